/* SPDX-License-Identifier: BSD-3-Clause */
#include "pretended.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weir/port.h>

enum {
	MOST_KERNELS = 128,
	FIRST_EXPORT = 600,
	MOST_EXPORTS = 200 /* numbers of files */,
	PAGE = 4096,
	EVERY_DEVICE = -1
};

/** struct kernel - one of the cpu backend's */
struct kernel {
	const char *name;
	void (*entry)(void *);
};

/** struct area - device memory, or pinned host memory */
struct area {
	void *address;
	size_t bytes;
	int device;    /* EVERY_DEVICE: all see it */
	size_t offset; /* of device memory in its BAR */
	struct area *next;
};

/** struct owned - what a stream or an event is: something of a device */
struct owned {
	int device;
};

static struct kernel kernels[MOST_KERNELS];
static unsigned kernel_count;
static struct area *device_memory, *pinned;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around the lists of memory, and who is inside */
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER; /* one kernel at a time; copies go on beside it */
static unsigned inside[PRETENDED_DEVICES];
__thread int pretended_current;

void pretended_complain(const char *what, const void *address)
{
	fprintf(stderr, "pretended device: %s: %p\n", what, address);
	signal(SIGABRT, SIG_DFL); /* no test goes on after this: locks are held */
	abort();
}

/* The cpu backend's registrations pass by here on their way to the library. */
void weir_cpu_register_kernel(const char *name, void (*entry)(void *), size_t args_bytes)
{
	void (*next)(const char *, void (*)(void *), size_t);

	*(void **)&next = dlsym(RTLD_NEXT, "weir_cpu_register_kernel");
	if (kernel_count == MOST_KERNELS)
		pretended_complain("too many kernels", name);
	kernels[kernel_count++] = (struct kernel){ name, entry };
	next(name, entry, args_bytes);
}

void (*pretended_kernel(const char *name))(void *)
{
	for (unsigned i = 0; i < kernel_count; i++)
		if (!strcmp(kernels[i].name, name))
			return kernels[i].entry;
	return NULL;
}

bool pretended_stays(const char *name)
{
	return !strcmp(name, "weir_controller") || !strcmp(name, "weir_service");
}

/* Memory of the current device, which alone its copies and kernels may touch. */
static void protect(int access)
{
	for (struct area *area = device_memory; area; area = area->next)
		if (area->device == pretended_current)
			mprotect(area->address, area->bytes, access);
}

/* Let copies and kernels in, and out again. */
static void enter(void)
{
	pthread_mutex_lock(&mutex);
	signal(SIGSEGV, SIG_DFL); /* as when complaining */
	if (inside[pretended_current]++ == 0)
		protect(PROT_READ | PROT_WRITE);
	pthread_mutex_unlock(&mutex);
}

static void leave(void)
{
	pthread_mutex_lock(&mutex);
	if (--inside[pretended_current] == 0)
		protect(PROT_NONE);
	pthread_mutex_unlock(&mutex);
}

static void add(struct area **list, void *address, size_t bytes, int device)
{
	struct area *area = malloc(sizeof(*area));

	if (!area)
		pretended_complain("no memory", address);
	*area = (struct area){ address, bytes, device, 0, *list };
	*list = area;
}

static void must_be_current(int device, const void *what)
{
	if (device != pretended_current && device != EVERY_DEVICE)
		pretended_complain("of another device than the thread's current one", what);
}

static size_t take(struct area **list, const void *address)
{
	struct area *found;
	size_t bytes;

	while (*list && (*list)->address != address)
		list = &(*list)->next;
	found = *list;
	if (!found)
		pretended_complain("freed, but never allocated or pinned", address);
	must_be_current(found->device, address);
	bytes = found->bytes;
	*list = found->next;
	free(found);
	return bytes;
}

void *pretended_own(void)
{
	struct owned *owned = malloc(sizeof(*owned));

	if (owned)
		owned->device = pretended_current;
	return owned;
}

bool pretended_owned(const void *owned)
{
	if (owned)
		must_be_current(((const struct owned *)owned)->device, owned);
	return owned != NULL;
}

/* One order at a time: events are recorded and waited for by one thread. */
static struct {
	const void *event;
	const void *first;
	const void *behind;
} order;

void pretended_recorded(const void *event, const void *stream)
{
	order.event = event;
	order.first = stream;
}

bool pretended_awaits(const void *stream, const void *event)
{
	order.behind = stream;
	return event == order.event && stream != order.first;
}

void pretended_order(const void **first, const void **behind)
{
	*first = order.first;
	*behind = order.behind;
}

/* The file that devices' memory is of, such as a BAR; -1: memory of the process's own. Each device has a part
 * of it. */
static int bar(size_t *part_bytes)
{
	static int file = -2;
	static struct stat found;
	const char *path = getenv("WEIR_PRETENDED_MEMORY");

	if (file == -2) {
		file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
		if (path && (file < 0 || fstat(file, &found) != 0))
			pretended_complain("WEIR_PRETENDED_MEMORY cannot be opened", path);
	}
	*part_bytes = (size_t)found.st_size / PRETENDED_DEVICES / PAGE * PAGE;
	return file;
}

static const struct area *in_the_way(size_t at, size_t bytes)
{
	const struct area *area = device_memory;

	while (area && (area->device != pretended_current || at >= area->offset + area->bytes ||
			area->offset >= at + bytes))
		area = area->next;
	return area;
}

/* The first gap of the current device's part that is large enough; the part's end: there is none. */
static size_t find_gap(size_t bytes, size_t part_bytes)
{
	size_t at = (size_t)pretended_current * part_bytes, end = at + part_bytes;
	const struct area *area;

	while (at + bytes <= end && (area = in_the_way(at, bytes)))
		at = area->offset + area->bytes;
	return at + bytes <= end ? at : end;
}

/* Memory of the current device, in its BAR if it has one. */
static void *map_memory(size_t bytes, size_t *offset)
{
	size_t part_bytes;
	int file = bar(&part_bytes);

	*offset = 0;
	if (file < 0)
		return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*offset = find_gap(bytes, part_bytes);
	if (*offset >= ((size_t)pretended_current + 1) * part_bytes)
		return MAP_FAILED;
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)*offset);
}

void *pretended_allocate(size_t bytes)
{
	size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE, offset;
	void *memory;

	pthread_mutex_lock(&mutex);
	memory = map_memory(rounded, &offset);
	if (memory == MAP_FAILED) {
		pthread_mutex_unlock(&mutex);
		return NULL;
	}
	memset(memory, 0xa5, rounded);
	add(&device_memory, memory, rounded, pretended_current);
	device_memory->offset = offset;
	if (inside[pretended_current] == 0)
		mprotect(memory, rounded, PROT_NONE);
	pthread_mutex_unlock(&mutex);
	return memory;
}

void pretended_release(void *address)
{
	pthread_mutex_lock(&mutex);
	if (address)
		munmap(address, take(&device_memory, address));
	pthread_mutex_unlock(&mutex);
}

size_t pretended_unused(void)
{
	size_t unused = PRETENDED_MEMORY_BYTES;

	pthread_mutex_lock(&mutex);
	for (struct area *area = device_memory; area; area = area->next)
		unused -= area->device == pretended_current ? area->bytes : 0;
	pthread_mutex_unlock(&mutex);
	return unused;
}

void pretended_pin(void *address, size_t bytes, bool everyone)
{
	if (((uintptr_t)address | bytes) % PAGE)
		pretended_complain("pinned, but not in whole pages", address);
	pthread_mutex_lock(&mutex);
	add(&pinned, address, bytes, everyone ? EVERY_DEVICE : pretended_current);
	pthread_mutex_unlock(&mutex);
}

size_t pretended_unpin(void *address)
{
	size_t bytes;

	pthread_mutex_lock(&mutex);
	bytes = take(&pinned, address);
	pthread_mutex_unlock(&mutex);
	return bytes;
}

/** struct span - of addresses */
struct span {
	uintptr_t first;
	uintptr_t end;
};

/* Is a line of /proc/self/maps of a PCI function's registers, by the name it has? */
static bool is_of_registers(const char *line)
{
	static const char *const names[] = { "vfio", "/resource", "registers" };
	bool is = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		is |= strstr(line, names[i]) != NULL;
	return is;
}

/* How many bytes of @asked a line of /proc/self/maps has; @kind: if it is of registers, or not */
static size_t mapped_by(const char *line, struct span asked, bool kind)
{
	struct span has;

	if (sscanf(line, "%lx-%lx", &has.first, &has.end) != 2 || is_of_registers(line) != kind)
		return 0;
	has.first = has.first > asked.first ? has.first : asked.first;
	has.end = has.end < asked.end ? has.end : asked.end;
	return has.end > has.first ? has.end - has.first : 0;
}

/* How many bytes of the process's range are mapped, of registers or of anything else. */
static size_t mapped_of(const void *address, size_t bytes, bool registers)
{
	struct span asked = { (uintptr_t)address, (uintptr_t)address + bytes };
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	size_t sum = 0;

	while (maps && fgets(line, sizeof(line), maps))
		sum += mapped_by(line, asked, registers);
	if (maps)
		fclose(maps);
	return sum;
}

/* A check that the environment leaves out, for the control that misses it. */
static bool is_lax(const char *check)
{
	const char *lax = getenv("WEIR_PRETENDED_LAX");

	return lax && !strcmp(lax, check);
}

/* What there is to register at all: every byte of the range, and all of it of the kind that was named. */
static enum pretended_registered examine(const void *address, size_t bytes, bool registers)
{
	size_t right = mapped_of(address, bytes, registers), wrong = mapped_of(address, bytes, !registers);

	if (right + wrong != bytes && !is_lax("gone"))
		return PRETENDED_GONE;
	return wrong && !is_lax("kind") ? PRETENDED_WRONG_KIND : PRETENDED_GOOD;
}

static bool overlaps(const struct area *area, const char *address, size_t bytes)
{
	while (area && (address >= (const char *)area->address + area->bytes ||
			address + bytes <= (const char *)area->address))
		area = area->next;
	return area != NULL;
}

enum pretended_registered pretended_register(void *address, size_t bytes, bool registers, bool everyone)
{
	enum pretended_registered found;
	bool twice;

	if ((!bytes || ((uintptr_t)address | bytes) % PAGE) && !is_lax("unaligned"))
		return PRETENDED_UNALIGNED;
	found = examine(address, bytes, registers);
	if (found != PRETENDED_GOOD)
		return found;
	if (registers && getenv("WEIR_PRETENDED_NO_REGISTERS"))
		return PRETENDED_REFUSED;
	pthread_mutex_lock(&mutex);
	twice = overlaps(pinned, address, bytes) && !is_lax("twice");
	if (!twice)
		add(&pinned, address, bytes, everyone ? EVERY_DEVICE : pretended_current);
	pthread_mutex_unlock(&mutex);
	return twice ? PRETENDED_TWICE : PRETENDED_GOOD;
}

bool pretended_unregister(void *address)
{
	struct area **link = &pinned, *found;
	bool waits = !is_lax("use");

	if (waits)
		pthread_mutex_lock(&running);
	pthread_mutex_lock(&mutex);
	while (*link && (*link)->address != address)
		link = &(*link)->next;
	found = *link;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&mutex);
	if (waits)
		pthread_mutex_unlock(&running);
	free(found);
	return found != NULL;
}

static const struct area *find(const struct area *area, const void *address)
{
	while (area && (size_t)((const char *)address - (const char *)area->address) >= area->bytes)
		area = area->next;
	return area;
}

int pretended_device_of(const void *address)
{
	const struct area *area;
	int device;

	pthread_mutex_lock(&mutex);
	area = find(device_memory, address);
	device = area ? area->device : -1;
	pthread_mutex_unlock(&mutex);
	return device;
}

/* A dma-buf begins where its allocation does, and a file of all of the BAR does not: mmap() sees to that. */
static size_t exported[MOST_EXPORTS];

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
	if (file >= FIRST_EXPORT && file < FIRST_EXPORT + MOST_EXPORTS)
		offset += (off_t)exported[file - FIRST_EXPORT];
	return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

/* The BAR's part that is @area, from byte @within on, or another device's if it is to be wrong; -1: there is
 * no BAR. */
static int export_bar(const struct area *area, size_t within)
{
	size_t part_bytes, begin = area->offset + within;
	int file = bar(&part_bytes);

	if (file < 0)
		return -1;
	if (getenv("WEIR_PRETENDED_WRONG_EXPORT"))
		begin = (begin + part_bytes) % (PRETENDED_DEVICES * part_bytes);
	file = fcntl(file, F_DUPFD_CLOEXEC, FIRST_EXPORT);
	if (file >= FIRST_EXPORT && file < FIRST_EXPORT + MOST_EXPORTS)
		exported[file - FIRST_EXPORT] = begin;
	return file;
}

int pretended_export(uint64_t address, size_t bytes, uint64_t *offset)
{
	const struct area *area;
	size_t within;
	int file = -1;

	pthread_mutex_lock(&mutex);
	area = find(device_memory, (const void *)(uintptr_t)address);
	if (area &&
	    (area->device != pretended_current || bytes > area->bytes - (address - (uintptr_t)area->address)))
		area = NULL;
	if (area) {
		within = address - (uintptr_t)area->address;
		if (offset)
			*offset = within;
		file = export_bar(area, offset ? 0 : within);
	}
	if (area && file < 0) {
		file = memfd_create("dma-buf", MFD_CLOEXEC);
		/* of the allocation, or of no more than was asked for */
		if (file >= 0 && ftruncate(file, (off_t)(offset ? area->bytes : bytes)) != 0)
			pretended_complain("no memory for a dma-buf", area->address);
	}
	pthread_mutex_unlock(&mutex);
	return file;
}

bool pretended_is_pinned(const void *address)
{
	bool found;

	pthread_mutex_lock(&mutex);
	found = find(pinned, address) != NULL;
	pthread_mutex_unlock(&mutex);
	return found;
}

void pretended_copy(void *to, const void *from, size_t bytes)
{
	enter();
	memcpy(to, from, bytes);
	leave();
}

void pretended_set(void *address, int value, size_t bytes)
{
	enter();
	memset(address, value, bytes);
	leave();
}

int pretended_run(void (*kernel)(void *), uint32_t blocks, uint32_t threads, void *args)
{
	struct weir_cpu_lane **self = dlsym(RTLD_DEFAULT, "weir_cpu_self"); /* this thread's */
	struct weir_cpu_lane before;
	u64 lanes = (u64)blocks * threads;

	if (!self)
		return -1;
	pthread_mutex_lock(&running);
	before = **self; /* one for all threads of the host */
	enter();
	for (u64 i = 0; i < lanes; i++) {
		**self = (struct weir_cpu_lane){
			.lane = 0, .lanes = 1, .thread = i, .threads = lanes, .wave = i
		};
		kernel(args);
	}
	leave();
	**self = before;
	pthread_mutex_unlock(&running);
	return 0;
}

__attribute__((destructor)) static void count_leaks(void)
{
	if (device_memory)
		pretended_complain("device memory was never freed", device_memory->address);
	if (pinned)
		pretended_complain("host memory stayed pinned", pinned->address);
}
