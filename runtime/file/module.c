/* SPDX-License-Identifier: BSD-3-Clause */
/* The window of a device's memory: its node, ranges of it, and which file systems' SSDs reach it. */
#include "module.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../../kmod-p2p/weir_p2p.h"
#include "../backend/error.h"
#include "../backend/window.h"
#include "files.h"

enum { BARS = 6, TRIAL_BYTES = 64 << 10, SCRATCH_ALIGN = 64 << 10 };

#define NODES "/dev/weir_p2p"

void file_module_begin(struct file_module *module)
{
	*module = (struct file_module){ .node = -1 };
	pthread_mutex_init(&module->mutex, NULL);
}

/* A window's node by which memory is had by its address; -1, and why there is none. */
static int open_window(const char *name, uint64_t *align, char why[MODULE_WHY])
{
	struct weir_p2p_info info = { .size = sizeof(info) };
	int node = open(name, O_RDWR | O_CLOEXEC);

	if (node < 0) {
		if (errno != ENOENT)
			snprintf(why, MODULE_WHY, "%s cannot be opened: %s", name, strerror(errno));
		return -1;
	}
	if (ioctl(node, WEIR_P2P_INFO, &info))
		snprintf(why, MODULE_WHY, "%s says nothing of itself: %s", name, strerror(errno));
	else if (info.abi != WEIR_P2P_ABI)
		snprintf(why, MODULE_WHY, "%s is of ABI %u, and this library of %u", name, info.abi,
			 WEIR_P2P_ABI);
	else if (!(info.features & WEIR_P2P_FEATURE_ADDRESSES))
		snprintf(why, MODULE_WHY,
			 "no vendor's shim is loaded with weir_p2p, which finds memory by its address");
	else {
		*align = info.address_align > info.page_bytes ? info.address_align : info.page_bytes;
		return node;
	}
	close(node);
	return -1;
}

/* An SSD's writes are there when the host has seen their completion, or when it has flushed them then. */
static bool can_arrive(struct file_module *module, const struct weir_backend *backend,
		       enum weir_peer_writes peer_writes, char why[MODULE_WHY])
{
	module->flushes = peer_writes == WEIR_PEER_WRITES_FLUSHED;
	if (peer_writes == WEIR_PEER_WRITES_ORDERED || peer_writes == WEIR_PEER_WRITES_ORDERED_ALL ||
	    (module->flushes && backend->ops->peer_flush))
		return true;
	snprintf(why, MODULE_WHY,
		 "the host %s flush what other devices write to this one's memory, which the %s backend does "
		 "not do",
		 module->flushes ? "has to" : "may have to", backend->ops->name);
	return false;
}

int file_module_arrived(struct weir_files *files)
{
	return files->module.flushes ? files->backend->ops->peer_flush(files->backend) : 0;
}

/* The window over a BAR of the context's device. Mutex held. */
static int open_node(struct weir_files *files, char why[MODULE_WHY])
{
	struct weir_backend_properties properties = { .numa_node = -1 };
	struct file_module *module = &files->module;
	char name[64];

	if (module->node >= 0)
		return 0;
	if (getenv("WEIR_FILE_NO_MODULE") || access(NODES, F_OK)) {
		snprintf(why, MODULE_WHY,
			 getenv("WEIR_FILE_NO_MODULE") ? "WEIR_FILE_NO_MODULE is set"
						       : "the kernel module weir_p2p is not loaded");
		return -ENOENT;
	}
	files->backend->ops->properties(files->backend, &properties);
	if (!can_arrive(module, files->backend, properties.peer_writes, why))
		return -ENOTSUP;
	snprintf(why, MODULE_WHY,
		 "weir_p2p has no window over a BAR of %s, which an administrator has to claim",
		 *properties.pci_address ? properties.pci_address : "what is no PCI device");
	for (int bar = 0; bar < BARS && *properties.pci_address && module->node < 0; bar++) {
		snprintf(name, sizeof(name), NODES "/%s-%d", properties.pci_address, bar);
		module->node = open_window(name, &module->align, why);
	}
	return module->node < 0 ? -ENODEV : 0;
}

static void say_refused(int node, uint64_t address, uint64_t bytes, char why[MODULE_WHY])
{
	snprintf(why, MODULE_WHY, "weir_p2p gives no pages for %" PRIu64 " bytes at %#" PRIx64 ": %.100s",
		 bytes, address, weir_window_reason(node));
}

static void give_back(int node, uint32_t handle)
{
	struct weir_p2p_deregister call = { .size = sizeof(call), .handle = handle };

	/* A signal leaves it to be given back when its I/O has ended. */
	(void)ioctl(node, WEIR_P2P_DEREGISTER, &call);
}

/* Mapped, once the module has it. */
static int map_range(int node, struct file_pin *pin, char why[MODULE_WHY])
{
	struct weir_p2p_register call = { .size = sizeof(call),
					  .flags = WEIR_P2P_BY_ADDRESS,
					  .offset = pin->address,
					  .bytes = pin->bytes };
	void *memory;

	if (ioctl(node, WEIR_P2P_REGISTER, &call)) {
		say_refused(node, pin->address, pin->bytes, why);
		return -1;
	}
	memory = mmap(NULL, pin->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)call.mmap_offset);
	if (memory == MAP_FAILED) {
		snprintf(why, MODULE_WHY, "pages of weir_p2p cannot be mapped: %s", strerror(errno));
		give_back(node, call.handle);
		return -1;
	}
	pin->host = memory;
	pin->handle = call.handle;
	return 0;
}

/* One that is there has it. */
static struct file_pin *find_pin(const struct file_module *module, uint64_t address, uint64_t bytes)
{
	struct file_pin *pin = module->pins;

	while (pin && (address < pin->address || address - pin->address > pin->bytes ||
		       bytes > pin->bytes - (address - pin->address)))
		pin = pin->next;
	return pin;
}

static struct file_pin *make_pin(struct file_module *module, uint64_t address, uint64_t bytes,
				 char why[MODULE_WHY])
{
	struct file_pin *pin = calloc(1, sizeof(*pin));
	uint64_t skew = address % module->align;

	if (!pin) {
		snprintf(why, MODULE_WHY, "there is no memory to note it");
		return NULL;
	}
	pin->address = address - skew;
	pin->bytes = (skew + bytes + module->align - 1) / module->align * module->align;
	if (map_range(module->node, pin, why)) {
		free(pin);
		return NULL;
	}
	pin->next = module->pins;
	module->pins = pin;
	return pin;
}

/* Mutex held. */
static struct file_pin *take_pin(struct weir_files *files, uint64_t address, uint64_t bytes,
				 char why[MODULE_WHY])
{
	struct file_module *module = &files->module;
	struct file_pin *pin = find_pin(module, address, bytes);

	if (!pin && !open_node(files, why))
		pin = make_pin(module, address, bytes, why);
	if (pin)
		pin->uses++;
	return pin;
}

struct file_pin *file_module_pin(struct weir_files *files, uint64_t address, uint64_t bytes,
				 char why[MODULE_WHY])
{
	struct file_pin *pin;

	pthread_mutex_lock(&files->module.mutex);
	pin = take_pin(files, address, bytes, why);
	pthread_mutex_unlock(&files->module.mutex);
	return pin;
}

struct file_pin *file_module_keep(struct weir_files *files, uint64_t address, uint64_t bytes,
				  char why[MODULE_WHY])
{
	struct file_pin *pin;

	pthread_mutex_lock(&files->module.mutex);
	pin = take_pin(files, address, bytes, why);
	if (pin && !pin->kept) {
		pin->kept = address;
		pin->uses++;
	}
	pthread_mutex_unlock(&files->module.mutex);
	return pin;
}

static void drop_pin(struct file_module *module, struct file_pin *pin)
{
	struct file_pin **link = &module->pins;

	if (--pin->uses)
		return;
	while (*link != pin)
		link = &(*link)->next;
	*link = pin->next;
	munmap(pin->host, pin->bytes);
	give_back(module->node, pin->handle);
	free(pin);
}

void file_module_unpin(struct weir_files *files, struct file_pin *pin)
{
	if (!pin)
		return;
	pthread_mutex_lock(&files->module.mutex);
	drop_pin(&files->module, pin);
	pthread_mutex_unlock(&files->module.mutex);
}

void file_module_forget(struct weir_files *files, uint64_t address)
{
	struct file_pin *pin;

	pthread_mutex_lock(&files->module.mutex);
	pin = files->module.pins;
	while (pin && pin->kept != address)
		pin = pin->next;
	if (pin) {
		pin->kept = 0;
		drop_pin(&files->module, pin);
	}
	pthread_mutex_unlock(&files->module.mutex);
}

void file_module_end(struct weir_files *files)
{
	struct file_module *module = &files->module;
	struct weir_backend *backend = files->backend;

	while (module->pins) {
		module->pins->uses = 1;
		drop_pin(module, module->pins);
	}
	if (module->scratch)
		backend->ops->release(backend, module->scratch, TRIAL_BYTES + SCRATCH_ALIGN,
				      WEIR_MEMORY_DEVICE);
	while (module->pairs) {
		struct file_pair *next = module->pairs->next;

		free(module->pairs);
		module->pairs = next;
	}
	if (module->node >= 0)
		close(module->node);
	pthread_mutex_destroy(&module->mutex);
}

static struct file_pair *find_pair(struct file_module *module, bool block, uint64_t device)
{
	struct file_pair *pair = module->pairs;

	while (pair && (pair->block != block || pair->device != device))
		pair = pair->next;
	return pair;
}

struct file_pair *file_module_pair(struct weir_files *files, int file)
{
	struct file_module *module = &files->module;
	struct file_pair *pair;
	struct stat status;
	bool block;

	if (fstat(file, &status))
		return NULL;
	block = S_ISBLK(status.st_mode);
	pthread_mutex_lock(&module->mutex);
	pair = find_pair(module, block, block ? status.st_rdev : status.st_dev);
	if (!pair && (pair = calloc(1, sizeof(*pair))) != NULL) {
		pair->block = block;
		pair->device = block ? status.st_rdev : status.st_dev;
		pair->driver = file_driver_of(file);
		pair->next = module->pairs;
		module->pairs = pair;
	}
	pthread_mutex_unlock(&module->mutex);
	return pair;
}

/**
 * struct try_file - a file that a pair is tried with, from @offset
 * @file: of ours, for reading
 * @theirs: the program's
 * @address: of the device's memory
 * @host: where the host sees that
 */
struct try_file {
	struct weir_files *files;
	int file;
	int theirs;
	off_t offset;
	uint64_t address;
	const char *index;
	char *host;
};

static int read_all(int file, char *to, size_t bytes, off_t offset)
{
	ssize_t got = pread(file, to, bytes, offset);

	return got < 0 ? -errno : (size_t)got == bytes ? 0 : -ENODATA;
}

static int try_known(void *of, char *to, size_t bytes)
{
	struct try_file *try = of;

	return read_all(try->file, to, bytes, try->offset);
}

static int try_put(void *of, const char *from, size_t bytes)
{
	struct weir_backend *backend = ((struct try_file *)of)->files->backend;

	return backend->ops->h2d(backend, ((struct try_file *)of)->address, from, bytes);
}

static int try_read(void *of, size_t bytes)
{
	struct try_file *try = of;
	int error = read_all(try->file, try->host, bytes, try->offset);

	return error ? error : file_module_arrived(try->files);
}

static int try_get(void *of, char *to, size_t bytes)
{
	struct weir_backend *backend = ((struct try_file *)of)->files->backend;

	return backend->ops->d2h(backend, to, ((struct try_file *)of)->address, bytes);
}

/* Memory of the device with pages, for trials. Mutex held. */
static bool make_scratch(struct weir_files *files, char why[MODULE_WHY])
{
	struct file_module *module = &files->module;
	struct weir_backend *backend = files->backend;
	void *host;

	if (!module->scratch && backend->ops->allocate(backend, TRIAL_BYTES + SCRATCH_ALIGN,
						       WEIR_MEMORY_DEVICE, &host, &module->scratch)) {
		module->scratch = 0;
		snprintf(why, MODULE_WHY, "there is no memory of the device to try it with");
		return false;
	}
	if (!module->scratch_pin)
		module->scratch_pin =
			take_pin(files, (module->scratch + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN,
				 TRIAL_BYTES, why);
	return module->scratch_pin != NULL;
}

/* Where a file has data: holes are filled by the host. Block devices have none, and say that they do not
 * know. Return: how much, up to TRIAL_BYTES; 0: none. */
static size_t find_data(struct try_file *try)
{
	off_t from = lseek(try->file, 0, SEEK_DATA), to = from < 0 ? -1 : lseek(try->file, from, SEEK_HOLE);

	if (from < 0 && errno == EINVAL) {
		from = 0;
		to = lseek(try->file, 0, SEEK_END);
	}
	from = (from + FILES_ALIGN - 1) / FILES_ALIGN * FILES_ALIGN;
	try->offset = from;
	if (to - from < FILES_ALIGN)
		return 0;
	return to - from < TRIAL_BYTES ? (size_t)(to - from) / FILES_ALIGN * FILES_ALIGN : TRIAL_BYTES;
}

/* Return: what is known of the pair then. Mutex held. */
static int try_open_file(struct weir_files *files, int file, struct file_pair *pair)
{
	struct file_module *module = &files->module;
	struct try_file try = { .files = files, .file = file };
	struct file_trial trial = { .known = try_known,
				    .put = try_put,
				    .move = try_read,
				    .get = try_get,
				    .of = &try,
				    .driver = pair->driver.name,
				    .copies = pair->driver.copies };
	int error;

	trial.bytes = find_data(&try);
	if (!trial.bytes) {
		snprintf(pair->why, MODULE_WHY,
			 "not tried: the file has no block of data that could be read");
		return PAIR_UNKNOWN;
	}
	if (!make_scratch(files, pair->why))
		return PAIR_UNKNOWN;
	try.host = module->scratch_pin->host;
	try.address = module->scratch_pin->address;
	error = file_trial_run(&trial, pair->why);
	return !error ? PAIR_GOOD : error == -EAGAIN ? PAIR_UNKNOWN : PAIR_BAD;
}

/* A descriptor of ours: that of the program may be open for writing alone, and has an offset. */
static int open_own(int file)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
	return open(name, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

static void say_bad(const struct file_pair *pair, const char *why)
{
	weir_report("files on block device %u:%u do not go straight %s the device's memory: %s. They go by "
		    "staging; "
		    "docs/kernel.md says what may be in the way",
		    major(pair->device), minor(pair->device), why == pair->why ? "into" : "from", why);
}

/* Mutex held. */
static void try_pair(struct weir_files *files, int file, struct file_pair *pair)
{
	int own = open_own(file), state;

	if (own < 0) {
		snprintf(pair->why, MODULE_WHY, "not tried: the file cannot be opened for reading (%s)",
			 strerror(errno));
		return;
	}
	state = try_open_file(files, own, pair);
	close(own);
	if (state == PAIR_BAD)
		say_bad(pair, pair->why);
	/* release: pairs with the acquire in file_module_reaches(): @why was written before */
	atomic_store_explicit(&pair->state, state, memory_order_release);
}

bool file_module_reaches(struct weir_files *files, struct file_target *target, char why[MODULE_WHY])
{
	struct file_module *module = &files->module;
	struct file_pair *pair = target->pair;
	bool reaches;

	if (!pair)
		pair = target->pair = file_module_pair(files, target->file);
	/* acquire: pairs with the release in try_pair() */
	if (pair && !why && atomic_load_explicit(&pair->state, memory_order_acquire) != PAIR_UNKNOWN)
		return atomic_load_explicit(&pair->state, memory_order_relaxed) ==
		       PAIR_GOOD; /* relaxed: it does not change any more */
	if (!pair)
		return false;
	pthread_mutex_lock(&module->mutex);
	/* relaxed: under the mutex */
	if (atomic_load_explicit(&pair->state, memory_order_relaxed) == PAIR_UNKNOWN)
		try_pair(files, target->file, pair);
	reaches =
		atomic_load_explicit(&pair->state, memory_order_relaxed) == PAIR_GOOD; /* relaxed: as above */
	if (why)
		memcpy(why, pair->why, MODULE_WHY);
	pthread_mutex_unlock(&module->mutex);
	return reaches;
}

static bool is_complement(const char *one, const char *other, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (one[i] != (char)~other[i])
			return false;
	return true;
}

/* What the file has is what will be overwritten: it has to be something else, all of it or a part; @from is
 * the complement. */
static int try_other(void *of, const char *from, size_t bytes)
{
	struct try_file *try = of;
	char *has = aligned_alloc(FILES_ALIGN, bytes);
	ssize_t got = has ? pread(try->file, has, bytes, try->offset) : -1;
	bool other = got >= 0;

	if (other && (size_t)got == bytes)
		other = !is_complement(has, from, bytes);
	free(has);
	return other ? 0 : -EALREADY;
}

static int try_write(void *of, size_t bytes)
{
	struct try_file *try = of;
	ssize_t did = pwrite(try->theirs, try->index, bytes, try->offset);

	return did < 0 ? -errno : (size_t)did == bytes ? 0 : -ENODATA;
}

/* Mutex held. */
static void try_written(struct weir_files *files, const struct file_target *target, struct try_file *try,
			size_t bytes)
{
	struct file_trial trial = { .writes = true,
				    .known = try_get,
				    .put = try_other,
				    .move = try_write,
				    .get = try_known,
				    .of = try,
				    .bytes = bytes,
				    .driver = target->pair->driver.name,
				    .copies = target->pair->driver.copies };
	struct file_pair *pair = target->pair;
	char why[MODULE_WHY];
	int error;

	try->files = files;
	try->theirs = target->file;
	try->file = open_own(target->file);
	if (try->file < 0)
		return;
	error = file_trial_run(&trial, why);
	close(try->file);
	if (error == -EIO || error == -EREMOTEIO)
		say_bad(pair, why);
	/* relaxed: nothing else comes with it */
	if (!error || error == -EIO || error == -EREMOTEIO)
		atomic_store_explicit(&pair->written, error ? PAIR_BAD : PAIR_GOOD, memory_order_relaxed);
}

bool file_module_took(const struct file_target *target)
{
	/* relaxed: as above */
	return target->pair &&
	       atomic_load_explicit(&target->pair->written, memory_order_relaxed) == PAIR_GOOD;
}

bool file_module_takes(struct weir_files *files, const struct file_target *target, const char *index,
		       uint64_t address, uint64_t offset, uint64_t bytes)
{
	uint64_t head = (FILES_ALIGN - offset % FILES_ALIGN) % FILES_ALIGN;
	struct try_file try = { .offset = (off_t)(offset + head),
				.index = index + head,
				.address = address + head };

	if (bytes < head + FILES_ALIGN || (uintptr_t)try.index % FILES_ALIGN)
		return file_module_took(target);
	bytes = (bytes - head) / FILES_ALIGN * FILES_ALIGN;
	pthread_mutex_lock(&files->module.mutex);
	/* relaxed: under the mutex */
	if (target->pair &&
	    atomic_load_explicit(&target->pair->written, memory_order_relaxed) == PAIR_UNKNOWN)
		try_written(files, target, &try, bytes < TRIAL_BYTES ? bytes : TRIAL_BYTES);
	pthread_mutex_unlock(&files->module.mutex);
	return file_module_took(target);
}
