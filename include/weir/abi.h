/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * abi.h: the structures that host and lanes share.
 *
 * Owns: their layout, and nothing else. Sizes and offsets are asserted; addresses
 * are words (weir_addr), never pointers. Words that several agents touch are
 * weir_shared_*; everything else is written by the host before lanes can see it. Locks and their chain are
 * in abi_chain.h, volumes whose blocks lanes place in abi_volume.h; both come with this.
 */
#ifndef WEIR_ABI_H
#define WEIR_ABI_H

#include <weir/abi_chain.h>
#include <weir/abi_volume.h>
#include <weir/nvme.h>
#include <weir/policies.h>
#include <weir/port.h>
#include <weir/status.h>

/** WEIR_ABI_VERSION - changes whenever a structure below changes its layout */
#define WEIR_ABI_VERSION 9

/* How a completion's data reached its destination. */
enum {
	WEIR_PATH_NONE = 0,
	WEIR_PATH_DIRECT = 1, /* the controller wrote the destination itself */
	WEIR_PATH_PULL = 2,   /* lanes copied it, from pinned staging or the medium itself */
	WEIR_PATH_CACHE = 3,  /* it was in the cache, or went there */
	WEIR_PATH_SHARE = 4,  /* it was in a buffer of the Share Table, or went there */
	WEIR_PATH_TIER = 5,   /* it was in the cache's tier in host memory */
};

/**
 * struct weir_event - where a completion is told
 * @word: while nothing has completed: 0, or bit 61 in lanes built with WEIR_DEBUG; then bit 63
 *        set, the path in 39:32 and the weir_status in 31:0, and bit 62 once weir_wait_any() gave it
 *
 * Submitting resets it; it must stay until bit 63 is set.
 */
struct weir_event {
	weir_shared_u64 word;
};

WEIR_ASSERT_SIZE(struct weir_event, 8);

#define WEIR_EVENT_DONE     ((u64)1 << 63)
#define WEIR_EVENT_CONSUMED ((u64)1 << 62)
#define WEIR_EVENT_PENDING  ((u64)1 << 61)
/*
 * With WEIR_EVENT_DONE: the request failed, and can be submitted again. 59:56 the kind of its status
 * (weir_status_retry_kind()), 55:54 its CRD, 53:0 address of its struct weir_retry_record / 8.
 */
#define WEIR_EVENT_RETRY ((u64)1 << 60)
#define WEIR_EVENT_LOST                                                                                      \
	((u64)1 << 59) /* without WEIR_EVENT_RETRY: it could have been, but the record was needed again */
#define WEIR_EVENT_KIND_SHIFT 56
#define WEIR_EVENT_CRD_SHIFT  54
#define WEIR_EVENT_RECORD     (((u64)1 << 54) - 1)

/* What a completion continues with: the kind of weir_slot.target. */
enum {
	WEIR_TARGET_NONE = 0,
	WEIR_TARGET_EVENT = 1,   /* a struct weir_event */
	WEIR_TARGET_LINE = 2,    /* a cache line's word, and its status word: the line was fetched */
	WEIR_TARGET_WRITTEN = 3, /* the same: the line was written back */
	WEIR_TARGET_JOIN = 4,    /* a struct weir_write_join, of a write to several engines */
};

/**
 * struct weir_slot - one command in flight of a queue pair; its CID is its ticket modulo 65536
 * @sequence: 2 x turn while free, 2 x turn + 1 from filled to reaped; modulo 2^32
 * @target_kind: WEIR_TARGET_...
 * @pull_blocks: WEIR_PATH_PULL: what the reaping wave copies from the slot's staging to @buffer
 * @target: address of the target
 * @status: WEIR_TARGET_LINE, _WRITTEN: where the full status goes on failure; WEIR_TARGET_EVENT: as of
 * weir_retry()
 * @buffer: WEIR_PATH_PULL: where the issuer wants its data
 */
struct weir_slot {
	weir_shared_u32 sequence;
	u16 target_kind;
	u16 pull_blocks;
	weir_addr target;
	weir_addr status;
	weir_addr buffer;
};

WEIR_ASSERT_SIZE(struct weir_slot, 32);

/**
 * struct weir_retry_record - the last request of a slot that failed and can be submitted again, for whoever
 * waits for its event
 * @event: address of the request's event; 0 while the record is written
 * @queue: the slot's struct weir_queue
 * @lba: first block
 * @buffer: device address of the data
 * @cdw12: command's cdw12
 * @opcode: NVME_OPCODE_...
 * @state: as of weir_retry()
 */
struct weir_retry_record {
	weir_shared_u64 event;
	weir_shared_u64 queue;
	weir_shared_u64 lba;
	weir_shared_u64 buffer;
	weir_shared_u32 cdw12;
	weir_shared_u32 opcode;
	weir_shared_u32 state;
	u32 reserved;
};

WEIR_ASSERT_SIZE(struct weir_retry_record, 48);

/* What stands between the rings of a queue pair and its controller. */
enum {
	WEIR_DOORBELL_BUS = 0,    /* nothing: it has registers on the bus, or shadows of them */
	WEIR_DOORBELL_DEVICE = 1, /* nothing: it is on this device, so device scope reaches it */
	WEIR_DOORBELL_NIC = 2,    /* a network: lanes have a NIC carry each entry (core/queue/mlx5.h) */
};

/**
 * struct weir_queue - a queue pair as lanes see it (DESIGN: the device ABI)
 *
 * The first part never changes while lanes run. Each later part has its own
 * 128 bytes because different lanes write it. Tickets are 64-bit and never wrap
 * in practice; slots, doorbells and phases take their low bits.
 */
struct weir_queue {
	weir_addr sq;          /* struct nvme_sqe[depth] */
	weir_addr cq;          /* struct nvme_cqe[depth] */
	weir_addr slots;       /* struct weir_slot[depth] */
	weir_addr prp_lists;   /* u64[depth][prp_entries] */
	weir_addr sq_doorbell; /* u32 */
	weir_addr cq_doorbell; /* u32 */
	weir_addr
		staging; /* WEIR_PATH_PULL: depth times 2^staging_log2 bytes the controller reaches; else 0 */
	u32 depth;       /* power of two, 2 at least; depth - 1 commands fly */
	u32 depth_log2;
	u32 prp_entries; /* power of two; a list never crosses a page */
	u32 nsid;
	u32 block_log2;
	u32 path; /* WEIR_PATH_... */
	u32 id;   /* NVMe queue identifier */
	u16 staging_log2;
	u16 placed;        /* 0; or, of a volume whose blocks lanes place, WEIR_QUEUE_FORWARDER or _ENGINE */
	u32 doorbell_kind; /* WEIR_DOORBELL_... */
	/** dead: 0, or the weir_status that every request gets from now on, with WEIR_QUEUE_... */
	weir_shared_u32 dead;
	/** shadow: shadow word of sq_doorbell, cq_doorbell's as far behind it as that is; each one's EventIdx
	 * word a page on; 0: none */
	weir_addr shadow;
	weir_addr window; /* WEIR_DISK_WINDOW: data lies in [window, window + window_bytes) */
	u64 window_bytes;
	u64 bus_offset; /* from an address of lanes to the controller's, modulo 2^64 */

	/** tail: next ticket to hand out; moved by compare-and-swap */
	weir_shared_u64 tail __attribute__((aligned(128)));
	/** first: deadline of the submission that others have overtaken and shall not for ever; 0: none
	 * (core/queue/sq.h) */
	weir_shared_u64 first;
	/** overtaken: tickets that went to younger ones since, and tries of theirs that were refused */
	weir_shared_u64 overtaken;

	/** pending: waves that committed and were not yet seen by a combiner */
	weir_shared_u64 pending __attribute__((aligned(128)));
	/** committed: tickets below it were announced by the doorbell; combiner's own */
	weir_shared_u64 committed;
	weir_addr volume; /* placed: its struct weir_placed. Never changes, like the next one */
	weir_addr nic;    /* WEIR_DOORBELL_NIC: its struct weir_mlx5 */

	/** reap: completions consumed, times 2; plus 1 while a wave reads the ring; only ever tried */
	weir_shared_u64 reap __attribute__((aligned(128)));
	weir_shared_u64 rung;      /* last head told to the controller; reaper's own */
	weir_shared_u64 completed; /* commands; reaper's own, read by the host */
	weir_shared_u64 failed;    /* of these, with an error status */
	weir_shared_u64 rogue;     /* completions for a command that was not in flight */
	weir_shared_u64 retried;   /* commands submitted once more: their issuers', who are rare */
	weir_shared_u64 rings; /* doorbells rung although there are shadow words: combiner's and reaper's */
	weir_addr records; /* struct weir_retry_record[depth], by slot; 0: none. Never changes, like the next
			      one */
	u64 retry;         /* as struct weir_disk.retry */
	/** medium: WEIR_PATH_PULL: where lanes see the first byte of the namespace: a read whose entry has in
	 * dw0 a block's number plus one has left its data there, not in staging; 0: none does */
	weir_addr medium;
} __attribute__((aligned(128)));

WEIR_ASSERT_SIZE(struct weir_queue, 512);
WEIR_ASSERT_OFFSET(struct weir_queue, tail, 128);
WEIR_ASSERT_OFFSET(struct weir_queue, pending, 256);
WEIR_ASSERT_OFFSET(struct weir_queue, reap, 384);

/*
 * In weir_queue.dead. UNSAFE: the controller could not be kept from memory, so the buffers of its commands
 * stay its own. Without it nobody writes to them any more, and whoever helps ends the commands
 * (core/queue/cq.h); ENDED: that was done.
 */
#define WEIR_QUEUE_UNSAFE      ((u32)1 << 31)
#define WEIR_QUEUE_ENDED       ((u32)1 << 30)
#define WEIR_QUEUE_DEAD_STATUS (~(WEIR_QUEUE_UNSAFE | WEIR_QUEUE_ENDED))

#define WEIR_DISK_READ_ONLY 1u
#define WEIR_DISK_SERVICE   2u /* a service reaps; lanes need not */
#define WEIR_DISK_WINDOW                                                                                     \
	4u /* nothing confines its controller but the check that data is in struct weir_queue.window */
#define WEIR_DISK_PLACED                                                                                     \
	8u /* a volume whose blocks lanes place: struct weir_queue.volume of its queue pairs says how */

/**
 * struct weir_disk - one storage as lanes see it
 * @abi_version: WEIR_ABI_VERSION of the host that made it
 * @id: number of the storage in its context, for messages
 * @queues: struct weir_queue[queue_count]
 * @queue_count: queue pairs; waves spread over them
 * @block_log2: block size as a power of two (9 or 12)
 * @blocks: capacity in blocks
 * @max_blocks: transfer limit in blocks
 * @flags: WEIR_DISK_...
 * @timeout_ns: how long a lane waits when it gives no deadline of its own
 * @fault: struct weir_fault of the context
 * @retry: how often a command is submitted again that the controller says is worth it, in 6:0; the
 *         controller's Command Retry Delay Times 1 to 3, in 100 ms, in 31:16, 47:32 and 63:48
 * (core/queue/retry.h)
 */
struct weir_disk {
	u32 abi_version;
	u32 id;
	weir_addr queues;
	u32 queue_count;
	u32 block_log2;
	u64 blocks;
	u32 max_blocks;
	u32 flags;
	u64 timeout_ns;
	weir_addr fault;
	u64 retry;
};

WEIR_ASSERT_SIZE(struct weir_disk, 64);

enum { WEIR_RETRIES_MOST = 100, WEIR_RETRIES_MASK = 0x7f, WEIR_RETRIES_DEFAULT = 4 };

/* A line's word: state 2:0, used 3, pins 11:4, version 23:12, key 63:24. */
#define WEIR_LINE_PIN       ((u64)1 << 4)
#define WEIR_LINE_PINS      ((u64)0xff << 4)
#define WEIR_LINE_VERSION   ((u64)1 << 12)
#define WEIR_LINE_VERSIONS  ((u64)0xfff << 12)
#define WEIR_LINE_KEY_SHIFT 24
#define WEIR_LINE_STATE     ((u64)0x7)
#define WEIR_LINE_USED      ((u64)1 << 3) /* read since the policy last asked; only a hint */
#define WEIR_KEY_BITS       40

/*
 * States. Bit 0: the line can be read. Of such a line bit 1 says that it is clean, or was
 * when its write-back began, and bit 2 that a write-back is under way. docs/cache.md has the
 * table of what turns which into which.
 */
enum {
	WEIR_LINE_INVALID = 0,
	WEIR_LINE_MODIFIED = 1,  /* storage does not have it yet */
	WEIR_LINE_BUSY = 2,      /* being filled */
	WEIR_LINE_READY = 3,     /* as on storage */
	WEIR_LINE_REWRITTEN = 5, /* written to again while it is being written back */
	WEIR_LINE_FAILED = 6,    /* could not be fetched */
	WEIR_LINE_WRITING = 7,   /* being written back */
	WEIR_LINE_BIT_READY = 1,
	WEIR_LINE_BIT_CLEAN = 2,
	WEIR_LINE_BIT_FAILED = 4,
	WEIR_LINE_BIT_WRITING = 4,
};

enum { WEIR_WAYS = 4 };

/** struct weir_set - the words of one set: one 32-byte sector, one probe */
struct weir_set {
	weir_shared_u64 word[WEIR_WAYS];
} __attribute__((aligned(32)));

WEIR_ASSERT_SIZE(struct weir_set, 32);

/**
 * struct weir_set_policy - what only the miss path touches
 * @lock: 1 while a lane picks a victim; only ever tried
 * @state: the policy's word; what it means is the policy's
 * @status: full status of a FAILED line, with WEIR_STATUS_CONSUMED once whoever fetched it does not try again
 * what was worth another try; of a readable one how its last write-back ended. An error is sticky, that is
 * the line is not written back again, until it was taken, which adds WEIR_STATUS_CONSUMED
 * @own: more words of the policy's
 */
struct weir_set_policy {
	weir_shared_u32 lock;
	weir_shared_u32 state;
	weir_shared_u32 status[WEIR_WAYS];
	weir_shared_u32 own[9];
	u32 reserved;
};

WEIR_ASSERT_SIZE(struct weir_set_policy, 64);

#define WEIR_STATUS_CONSUMED ((u32)1 << 31)
#define WEIR_STATUS_UNSENT                                                                                   \
	WEIR_STATUS_CONSUMED /* nothing but that: a write-back was begun, but not submitted */

/**
 * struct weir_lines - the cache as lanes see it
 * @line_log2: line size in bytes as a power of two
 * @sets: number of sets of WEIR_WAYS lines
 * @set_magic: floor((2^64 - 1) / sets), for key modulo sets without a division
 * @words: struct weir_set[sets]
 * @policies: struct weir_set_policy[sets]
 * @data: the lines, set after set
 * @policy: enum weir_policy
 * @policy_parameter: for a policy of the user's
 * @share: struct weir_share, or 0
 * @tier: struct weir_tier, or 0
 * @misses: lines fetched from storage; miss path only
 * @evictions: lines that held something else before
 * @retracted: claims taken back because no queue slot was free
 * @writebacks: lines whose write-back was begun
 * @write_errors: failed ones that somebody was told of
 * @fault: struct weir_fault of the context
 * @extents: struct weir_extent[extent_count], by key_base: whose keys are in it. The host may put another,
 *           longer table in its place while lanes run, and raises the count after that
 * @extent_count: entries
 */
struct weir_lines {
	u32 abi_version;
	u32 line_log2;
	u64 sets;
	u64 set_magic;
	weir_addr words;
	weir_addr policies;
	weir_addr data;
	u32 policy;
	u32 reserved;
	u64 policy_parameter;
	weir_shared_u64 misses __attribute__((aligned(64)));
	weir_shared_u64 evictions;
	weir_shared_u64 retracted;
	weir_shared_u64 writebacks;
	weir_shared_u64 write_errors;
	u64 reserved_counters[3];
	weir_addr fault __attribute__((aligned(64)));
	weir_shared_u64 extents;
	weir_shared_u32 extent_count;
	u32 reserved_extents;
	weir_addr share;
	weir_addr tier;
	u64 reserved_writing[3];
};

WEIR_ASSERT_SIZE(struct weir_lines, 192);

/**
 * struct weir_tier - lines in host memory behind those of a cache (docs/cache.md)
 * @sets: number of sets of WEIR_WAYS lines
 * @words: struct weir_set[sets], in the device's memory: as of the cache's lines INVALID, BUSY or READY
 * @data: the lines, set after set, in the host's memory
 * @inclusive: not 0: a line that went up leaves its copy here
 * @hits: lines that came from here; miss path only
 * @stored: lines that came down when they made room
 * @kept: of which a copy was here still
 * @dropped: that found no place
 */
struct weir_tier {
	u32 abi_version;
	u32 inclusive;
	u64 sets;
	weir_addr words;
	weir_addr data;
	u64 reserved[4];
	weir_shared_u64 hits __attribute__((aligned(64)));
	weir_shared_u64 stored;
	weir_shared_u64 kept;
	weir_shared_u64 dropped;
	u64 reserved_counters[4];
};

WEIR_ASSERT_SIZE(struct weir_tier, 128);

/*
 * An entry of a Share Table, word: 2:0 as of a line that is BUSY, READY or FAILED; changed 3; references
 * 15:4, version 23:16, key 63:24. Of an empty one only the version is kept.
 */
#define WEIR_SHARE_DIRTY    ((u64)1 << 3)
#define WEIR_SHARE_REF      ((u64)1 << 4)
#define WEIR_SHARE_REFS     ((u64)0xfff << 4)
#define WEIR_SHARE_VERSION  ((u64)1 << 16)
#define WEIR_SHARE_VERSIONS ((u64)0xff << 16)

enum { WEIR_SHARE_MOST = 0xfff }; /* references of an entry */

/**
 * struct weir_share_slot - what an entry's word has no room for
 * @buffer: device address of the line's bytes: the owner's
 * @status: full status of a buffer that could not be filled
 * @retry: how far its command is with being tried again, as weir_retry() says
 */
struct weir_share_slot {
	weir_shared_u64 buffer;
	weir_shared_u32 status;
	weir_shared_u32 retry;
};

WEIR_ASSERT_SIZE(struct weir_share_slot, 16);

/**
 * struct weir_share - a Share Table as lanes see it: of one cache, by its keys
 * @buckets: number of buckets of WEIR_WAYS entries
 * @words: struct weir_set[buckets]: the entries' words
 * @slots: struct weir_share_slot[buckets * WEIR_WAYS]
 * @registered: buffers that became an entry
 * @joined: requests that were given the pointer of another's buffer
 * @unshared: requests that had to go without an entry: the bucket was full, or the entry's references
 * @declined: requests that the policy did not share
 * @propagated: changed buffers that went to the cache
 */
struct weir_share {
	u32 abi_version;
	u32 padding;
	u64 buckets;
	weir_addr words;
	weir_addr slots;
	u64 reserved[4];
	weir_shared_u64 registered __attribute__((aligned(64)));
	weir_shared_u64 joined;
	weir_shared_u64 unshared;
	weir_shared_u64 declined;
	weir_shared_u64 propagated;
	u64 reserved_counters[3];
};

WEIR_ASSERT_SIZE(struct weir_share, 128);

/**
 * struct weir_extent - the keys of one storage, or of a stripe of several
 * @disks: struct weir_disk[disk_count]
 * @disk_count: members of the stripe
 * @unit_log2: lines per stripe unit as a power of two
 * @key_base: first key of this extent in its cache, 1 at least
 * @lines: keys in it
 */
struct weir_extent {
	weir_addr disks;
	u32 disk_count;
	u32 unit_log2;
	u64 key_base;
	u64 lines;
};

WEIR_ASSERT_SIZE(struct weir_extent, 32);

/**
 * struct weir_fault - the first device error of a context
 * @claimed: 0 none, 1 being written, 2 complete
 * @status: weir_status
 * @thread: lane that met it
 * @disk: weir_disk.id
 * @source: WEIR_FAULT_...: what @position counts
 * @position: element index, LBA, or bytes of an accessor
 * @limit: first invalid position, or bytes of the array's elements
 */
struct weir_fault {
	weir_shared_u32 claimed;
	u32 status;
	u64 thread;
	u32 disk;
	u32 source;
	u64 position;
	u64 limit;
	u64 reserved[3];
};

WEIR_ASSERT_SIZE(struct weir_fault, 64);

enum { WEIR_FAULT_INDEX = 1, WEIR_FAULT_LBA = 2, WEIR_FAULT_WRITE = 3, WEIR_FAULT_WIDTH = 4 };

/**
 * struct weir_array - elements of one size on a storage, read through a cache
 * @lines: struct weir_lines
 * @fault: struct weir_fault of the context
 * @extent: where the lines come from
 * @first_byte: storage byte of element 0, a multiple of the element's alignment
 * @count: elements
 * @element_bytes: bytes per element
 */
struct weir_array {
	weir_addr lines;
	weir_addr fault;
	struct weir_extent extent;
	u64 first_byte;
	u64 count;
	u32 element_bytes;
	u32 reserved;
};

WEIR_ASSERT_SIZE(struct weir_array, 72);

/**
 * struct weir_unaligned - an array whose elements begin at any byte (<weir/unaligned.h>)
 * @array: its first_byte and element_bytes are any; only weir_unaligned_... read its elements
 */
struct weir_unaligned {
	struct weir_array array;
};

WEIR_ASSERT_SIZE(struct weir_unaligned, 72);

enum { WEIR_SWEEP_NAMED = 8, WEIR_SWEEP_LATE = 64 };

/** struct weir_sweep_named - a line that could not be written: storage, first block and why */
struct weir_sweep_named {
	u32 disk;
	u32 status;
	u64 lba;
};

/**
 * struct weir_sweep_note - what a flush tells the host
 * @failed: lines that could not be written
 * @late: not 0: some storage did not answer in time
 * @named: the first of @failed
 * @waited: weir_disk.id plus 1 of each that did not, from place id modulo WEIR_SWEEP_LATE on; 0: free
 */
struct weir_sweep_note {
	weir_shared_u64 failed;
	weir_shared_u64 late;
	struct weir_sweep_named named[WEIR_SWEEP_NAMED];
	weir_shared_u32 waited[WEIR_SWEEP_LATE];
};

WEIR_ASSERT_SIZE(struct weir_sweep_note, 400);

/**
 * struct weir_writer - an array that lanes may write to, too (<weir/writer.h>)
 * @array: for all that reads; a kernel that has only this cannot make a line dirty
 */
struct weir_writer {
	struct weir_array array;
};

WEIR_ASSERT_SIZE(struct weir_writer, 72);

#endif
