/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/channel.h: one thread's way to one engine: commands go out, statuses come back, nobody waits.
 *
 * Owns: the interface, behind which a test may put an engine of its own, and the channel that is the host's
 * end of a queue pair of a storage's transport. Source: GNStor, section 4.2.
 */
#ifndef WEIR_VOLUME_CHANNEL_H
#define WEIR_VOLUME_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/nvme.h>

struct weir_channel;

/**
 * struct weir_channel_ops - a channel's functions; one thread at a time calls them
 * @submit: send @sqe, whose CID the channel gives; false: it is full
 * @poll: call @done for each command that has ended, with its status field; how many
 * @lost: nothing will end any more
 * @halt: keep the engine from the memory of commands that have not ended; 0 or a negative errno with a
 * sentence. May take seconds
 * @close: let go of it; nothing is in flight, or it was halted
 */
struct weir_channel_ops {
	bool (*submit)(struct weir_channel *channel, const struct nvme_sqe *sqe, void *argument);
	unsigned (*poll)(struct weir_channel *channel, void (*done)(void *argument, u32 status));
	bool (*lost)(struct weir_channel *channel);
	int (*halt)(struct weir_channel *channel);
	void (*close)(struct weir_channel *channel);
};

struct weir_channel {
	const struct weir_channel_ops *ops;
};

/**
 * weir_channel_open() - connect with an engine: an admin queue, and an I/O queue pair with rings in memory of
 * the channel's own
 * @uri: of a storage
 * @memory, @bytes: whole pages, all that commands may name
 * @least_transfer_bytes: what one command carries
 *
 * Blocks until the controller has started. Return: 0 or a negative errno with a sentence.
 */
int weir_channel_open(const char *uri, void *memory, size_t bytes, unsigned least_transfer_bytes,
		      struct weir_channel **out);

#endif
