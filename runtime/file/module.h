/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module.h: the device's memory through the kernel module weir_p2p, for the files of this folder.
 *
 * Owns: the window's node, the ranges that are registered there, and what is known of each file system:
 * whether what its SSD sends arrives. That is tried before the first request goes this way, with a block of a
 * file and a buffer that the device fills and reads back by itself (trial.c); where it does not arrive,
 * requests go by staging, and are told so.
 */
#ifndef WEIR_RUNTIME_FILE_MODULE_H
#define WEIR_RUNTIME_FILE_MODULE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODULE_WHY = 256 };

struct weir_files;
struct file_target;

/**
 * struct file_pin - a range of the device's memory that has pages
 * @address: of the device; the range may begin before what was asked for
 * @host: where it is mapped
 * @handle: the module's name for it
 * @uses: registrations in it, and one for @kept
 * @kept: the allocation of weir's that it stays for; 0: for none
 */
struct file_pin {
	struct file_pin *next;
	uint64_t address;
	uint64_t bytes;
	char *host;
	uint32_t handle;
	unsigned uses;
	uint64_t kept;
};

/**
 * struct file_driver - who moves the bytes of a file
 * @name: such as "the NFS client"; NULL: the SSD, or nobody that is known
 * @copies: by a processor, between the device's memory and the network's buffers
 */
struct file_driver {
	const char *name;
	bool copies;
};

/**
 * file_driver_of() - who moves the bytes of @file: the clients of network file systems, and NVMe over Fabrics
 *
 * Devices that are made of others (dm, md) are not looked through.
 */
struct file_driver file_driver_of(int file);

/** enum file_pair_state - whether the SSDs of a file system reach the device's memory */
enum file_pair_state { PAIR_UNKNOWN, PAIR_GOOD, PAIR_BAD };

/**
 * struct file_pair - a file system, or a block device, and the device's memory
 * @block: a block device's number, else a file system's
 * @device: the number
 * @state: what was read
 * @written: what was written
 * @why: how @state is known
 * @driver: who moves the bytes, if it is no SSD of this machine
 */
struct file_pair {
	struct file_pair *next;
	bool block;
	uint64_t device;
	_Atomic int state;
	_Atomic int written;
	char why[MODULE_WHY];
	struct file_driver driver;
};

/**
 * struct file_module - all of a context's
 * @mutex: pins, pairs and trials; taken before no other
 * @node: -1: not open
 * @align: what ranges are multiples of
 * @flushes: what SSDs have written is to be flushed before anybody is told of it
 * @scratch: memory of the device, to try it with; 0: not yet
 */
struct file_module {
	pthread_mutex_t mutex;
	int node;
	uint64_t align;
	bool flushes;
	struct file_pin *pins;
	struct file_pair *pairs;
	uint64_t scratch;
	struct file_pin *scratch_pin;
};

void file_module_begin(struct file_module *module);
/** file_module_end() - no registration is left */
void file_module_end(struct weir_files *files);

/** file_module_pin() - pages for [@address, @address + @bytes); NULL: none to be had, and @why says why not,
 * one clause */
struct file_pin *file_module_pin(struct weir_files *files, uint64_t address, uint64_t bytes,
				 char why[MODULE_WHY]);
/**
 * file_module_keep() - the same for all of an allocation, until that is freed: other parts of it then have
 * pages already
 * @address: the allocation's
 */
struct file_pin *file_module_keep(struct weir_files *files, uint64_t address, uint64_t bytes,
				  char why[MODULE_WHY]);
/** file_module_forget() - an allocation is about to be freed */
void file_module_forget(struct weir_files *files, uint64_t address);
/** file_module_unpin() - one use less; NULL is fine */
void file_module_unpin(struct weir_files *files, struct file_pin *pin);

/** file_module_arrived() - what SSDs had written to pins when it was called is there for lanes; else a
 * negative errno, with a sentence */
int file_module_arrived(struct weir_files *files);

/** file_module_pair() - of a file; NULL: there is no memory to note it, or no such file */
struct file_pair *file_module_pair(struct weir_files *files, int file);
/** file_module_reaches() - whether requests of a file may go this way: tried, if it was not; @why, if not
 * NULL: how so */
bool file_module_reaches(struct weir_files *files, struct file_target *target, char why[MODULE_WHY]);
/**
 * file_module_takes() - whether a request's writing may go this way, of a file that file_module_reaches() is
 * said of
 * @index: of the registered memory, where the host sees it
 * @address: the same for the device
 *
 * If it was not tried, its first blocks are: written this way, they have to be in the file what they are for
 * the device.
 */
bool file_module_takes(struct weir_files *files, const struct file_target *target, const char *index,
		       uint64_t address, uint64_t offset, uint64_t bytes);
/** file_module_took() - whether that was tried, and is so */
bool file_module_took(const struct file_target *target);

/**
 * struct file_trial - a way for bytes that is to be tried; each call returns 0, or a negative errno
 * @writes: it is tried from the buffer to the file; else from the file to the buffer
 * @known: what is to arrive, read in another way
 * @put: something else, where it is to arrive; of files that is what they have: -EALREADY if it is no other
 * @move: the way that is tried
 * @get: what has arrived, in another way
 * @of: given to each
 * @bytes: how many
 * @driver: as in struct file_driver, with @copies
 */
struct file_trial {
	bool writes;
	int (*known)(void *of, char *to, size_t bytes);
	int (*put)(void *of, const char *from, size_t bytes);
	int (*move)(void *of, size_t bytes);
	int (*get)(void *of, char *to, size_t bytes);
	void *of;
	size_t bytes;
	const char *driver;
	bool copies;
};

/**
 * file_trial_run() - poison, move, read back, compare
 *
 * Return: 0: all arrived; -EIO: not so; -EAGAIN: what is to arrive changed each time meanwhile; or what a
 * call returned.
 * @why says which, with the numbers.
 */
int file_trial_run(const struct file_trial *trial, char why[MODULE_WHY]);

#endif
