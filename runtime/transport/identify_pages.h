/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * identify_pages.h: what our controllers say of themselves, whichever front serves them.
 *
 * Owns: the contents of Identify and log pages. Pages are bytes here: libnvme's structures and ours are
 * not included together.
 */
#ifndef WEIR_IDENTIFY_PAGES_H
#define WEIR_IDENTIFY_PAGES_H

#include "virtual/virtual.h"

enum {
	WEIR_PAGE_AERS = 4,          /* Asynchronous Event Requests kept at a time */
	WEIR_PAGE_VERSION = 0x10400, /* of the NVMe Base specification */
	WEIR_PAGE_UUID = 3,          /* NIDT, of descriptors */
	WEIR_PAGE_COMMAND_SET = 4,
	WEIR_PAGE_UUID_BYTES = 16,
	WEIR_PAGE_HEALTH_BYTES = 512,
	WEIR_PAGE_NAMESPACES = 64, /* most that a controller reached over a network says it may have */
	WEIR_PAGE_ANA_BYTES = 16 + 32 + 4 * WEIR_PAGE_NAMESPACES,
};

/** weir_page_text() - a field of text, padded with spaces */
void weir_page_text(char *field, size_t bytes, const char *value);
/** weir_page_controller() - Identify Controller: limits and optional commands; names are the caller's */
void weir_page_controller(uint32_t max_transfer_bytes, void *page);

/**
 * struct weir_page_fabrics - what a controller reached over a network says besides
 * @nqn: its subsystem
 * @serial: likewise
 * @cntlid: its number
 * @namespaces: of its subsystem; 0: it is a discovery controller
 * @queue_entries: most commands of a queue at a time
 * @capsule_bytes: of a command's capsule, data included
 * @ana_seconds: what a change of an ANA state takes at most
 */
struct weir_page_fabrics {
	const char *nqn;
	const char *serial;
	uint16_t cntlid;
	uint32_t namespaces;
	uint16_t queue_entries;
	uint32_t capsule_bytes;
	uint8_t ana_seconds;
};

/** weir_page_fabrics() - the same of a controller reached over a network, after weir_page_controller() */
void weir_page_fabrics(const struct weir_page_fabrics *fabrics, void *page);
/**
 * weir_page_namespace() - Identify Namespace of a medium; @uuid is its NGUID; @shared: several controllers
 * have it
 */
void weir_page_namespace(const struct weir_medium *medium, const uint8_t *uuid, bool shared, void *page);
/**
 * weir_page_descriptors() - Namespace Identification Descriptors: a UUID; @page: NVME_IDENTIFY_BYTES zeros
 */
void weir_page_descriptors(const uint8_t *uuid, uint8_t *page);
/**
 * weir_page_descriptor() - in whatever controller's list of descriptors (Base 2.0, figure 277): the value of
 * @type, of @bytes; NULL: it has none
 */
const uint8_t *weir_page_descriptor(const uint8_t *page, uint8_t type, uint8_t bytes);
/** weir_page_health() - SMART / Health Information; @page: WEIR_PAGE_HEALTH_BYTES */
void weir_page_health(const struct weir_virtual_stats *stats, uint8_t *page);
/** weir_page_firmware() - Firmware Slot Information; @page: zeros */
void weir_page_firmware(uint8_t *page);

#endif
