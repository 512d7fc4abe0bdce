/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio_space.c: the address space that the devices of one IOMMU group share in this process.
 *
 * Owns: the process's list of spaces, and the mapper that has VFIO map what a space's map holds. Linux lets
 * one container, or one iommufd, have a group: so a second device of it joins the space that there is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "vfio_way.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_vfio_space *spaces;

static int map_fail(const struct weir_vfio_space *space, uint64_t address, uint64_t bytes, int error)
{
	const char *storage = space->storage;

	if (address + (bytes - 1) > space->highest)
		return weir_fail(ERANGE,
				 "storage \"%s\": memory lies at %#" PRIx64
				 ", and the IOMMU takes addresses up to %#" PRIx64
				 " only; weir needs one with 48 bits",
				 storage, address, space->highest);
	if (error == ENOMEM)
		return weir_fail(error,
				 "storage \"%s\": cannot pin %" PRIu64
				 " bytes for its controller; raise the limit of locked "
				 "memory (ulimit -l)",
				 storage, bytes);
	if (error == ENOSPC)
		return weir_fail(error,
				 "storage \"%s\": too many allocations to map for its controller; raise "
				 "dma_entry_limit of "
				 "vfio_iommu_type1, or allocate fewer, larger ones",
				 storage);
	return weir_fail(
		error, "storage \"%s\": cannot map %" PRIu64 " bytes at %#" PRIx64 " for its controller: %s",
		storage, bytes, address, strerror(error));
}

static int map(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes, void *host)
{
	struct weir_vfio_space *space = (struct weir_vfio_space *)mapper;
	int error = 0;

	pthread_mutex_lock(&space->lock);
	if (!space->over && space->way->map(space, address, bytes, host) != 0)
		error = map_fail(space, address, bytes, errno);
	pthread_mutex_unlock(&space->lock);
	return error;
}

static void unmap(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	struct weir_vfio_space *space = (struct weir_vfio_space *)mapper;

	pthread_mutex_lock(&space->lock);
	if (!space->over && space->way->unmap(space, address, bytes) != 0)
		weir_report("storage \"%s\": VFIO cannot unmap %" PRIu64 " bytes at %#" PRIx64 ": %s",
			    space->storage, bytes, address, strerror(errno));
	pthread_mutex_unlock(&space->lock);
}

static const struct weir_vfio_way *way_of(enum weir_vfio_choice choice)
{
	return choice == WEIR_VFIO_IOMMUFD ? &weir_vfio_iommufd : &weir_vfio_group;
}

static int create(struct weir_vfio *vfio, enum weir_vfio_choice choice)
{
	struct weir_vfio_space *space = calloc(1, sizeof(*space));

	if (choice == WEIR_VFIO_AUTO)
		choice = weir_pcie_iommufd_permitted(&vfio->function) ? WEIR_VFIO_IOMMUFD : WEIR_VFIO_GROUP;
	if (!space || !(space->storage = strdup(vfio->function.storage)) ||
	    weir_dma_map_create(&space->map) != 0) {
		free(space ? space->storage : NULL);
		free(space);
		return weir_fail(ENOMEM, "storage \"%s\": no memory", vfio->function.storage);
	}
	space->mapper = (struct weir_dma_mapper){ .map = map, .unmap = unmap };
	space->way = way_of(choice);
	space->number = vfio->function.group;
	space->iommu = space->group = -1;
	space->highest = UINT64_MAX;
	pthread_mutex_init(&space->lock, NULL);
	(void)weir_dma_map_follow(space->map, &space->mapper); /* it is empty */
	space->next = spaces;
	spaces = vfio->space = space;
	return 0;
}

/* The one of a group that still has devices. */
static struct weir_vfio_space *find(int number)
{
	struct weir_vfio_space *space = spaces;

	while (space && (space->number != number || !space->devices))
		space = space->next;
	return space;
}

int weir_vfio_space_join(struct weir_vfio *vfio, enum weir_vfio_choice choice)
{
	int error = 0;

	pthread_mutex_lock(&list_lock);
	vfio->space = find(vfio->function.group);
	if (!vfio->space)
		error = create(vfio, choice);
	else if (choice != WEIR_VFIO_AUTO && vfio->space->way != way_of(choice))
		error = weir_fail(EBUSY,
				  "storage \"%s\": storage \"%s\" of this process has IOMMU group %d open by "
				  "way of %s, and not as "
				  "vfio= asks for here; leave vfio= out, or write the same in both",
				  vfio->function.storage, vfio->space->storage, vfio->space->number,
				  vfio->space->way->name);
	if (error) {
		vfio->space = NULL;
		pthread_mutex_unlock(&list_lock);
		return error;
	}
	vfio->space->users++;
	return 0;
}

static void close_file(int *file)
{
	if (*file >= 0)
		close(*file);
	*file = -1;
}

static void close_files(struct weir_vfio_space *space)
{
	pthread_mutex_lock(&space->lock);
	close_file(&space->group);
	close_file(&space->iommu);
	pthread_mutex_unlock(&space->lock);
}

void weir_vfio_space_joined(struct weir_vfio *vfio, bool good)
{
	if (good)
		vfio->space->devices++;
	else if (!vfio->space->devices)
		close_files(vfio->space);
	pthread_mutex_unlock(&list_lock);
}

void weir_vfio_space_part(struct weir_vfio *vfio)
{
	struct weir_vfio_space *space = vfio->space;

	pthread_mutex_lock(&list_lock);
	pthread_mutex_lock(&space->lock);
	space->over = --space->devices == 0;
	pthread_mutex_unlock(&space->lock);
	pthread_mutex_unlock(&list_lock);
}

void weir_vfio_space_leave(struct weir_vfio *vfio)
{
	struct weir_vfio_space *space = vfio->space, **link = &spaces;

	pthread_mutex_lock(&list_lock);
	vfio->space = NULL;
	if (--space->users == 0) {
		while (*link != space)
			link = &(*link)->next;
		*link = space->next;
		weir_dma_map_unfollow(space->map, &space->mapper);
		weir_dma_map_destroy(space->map);
		close_files(space);
		pthread_mutex_destroy(&space->lock);
		free(space->storage);
		free(space);
	}
	pthread_mutex_unlock(&list_lock);
}
