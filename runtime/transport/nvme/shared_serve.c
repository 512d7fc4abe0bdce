/* SPDX-License-Identifier: BSD-3-Clause */
/* What a storage asks of a controller that others of this process may have, too. */
#include <errno.h>
#include <string.h>

#include "../../backend/error.h"
#include "shared_state.h"

enum {
	MOST_SHADOW_QUEUES = NVME_PAGE_BYTES / 8 - 1
}; /* with doorbells 4 bytes apart; the admin queue's are there, too */

static struct weir_nvme_member *member_of(struct weir_transport *transport)
{
	return (struct weir_nvme_member *)transport;
}

/* shared.N0: a reset is over; pairs with shared.N1: who sees its generation knows that the queue pairs of
 * earlier ones are gone. */
static void set_generation(uint64_t *generation, uint64_t value)
{
	__atomic_store_n(generation, value, __ATOMIC_RELEASE);
}

static uint64_t generation_of(const uint64_t *generation)
{
	return __atomic_load_n(generation, __ATOMIC_ACQUIRE); /* shared.N1: pairs with shared.N0 */
}

static bool flag(const bool *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED); /* relaxed: nothing is read on account of it but the
							   controller's registers */
}

static void set_flag(bool *word)
{
	__atomic_store_n(word, true, __ATOMIC_RELAXED); /* relaxed: as flag() */
}

/* The controller was reset since this storage's queue pairs were created. One that has none yet lost nothing.
 */
static bool is_behind(const struct weir_nvme_member *member)
{
	return member->count &&
	       generation_of(&member->generation) != generation_of(&member->controller->generation);
}

/* While the controller stops it is not ready, and no generation says yet why. */
bool weir_nvme_member_was_reset(struct weir_transport *transport)
{
	struct weir_nvme_member *member = member_of(transport);

	/* shared.N3: pairs with shared.N2: without the flag the generation is that of the reset */
	return __atomic_load_n(&member->controller->stopping, __ATOMIC_ACQUIRE) || is_behind(member);
}

/* A storage that is being opened waits for the end of another one's reset. */
static uint32_t read_raw(const struct weir_nvme_member *member, uint32_t offset)
{
	struct weir_nvme_shared *controller = member->controller;
	struct weir_transport *raw = controller->raw.transport;
	bool opens = !member->count;
	uint32_t value;

	if (opens)
		pthread_mutex_lock(&controller->lock);
	value = raw->ops->read32(raw, offset);
	if (opens)
		pthread_mutex_unlock(&controller->lock);
	return value;
}

uint32_t weir_nvme_member_read32(struct weir_transport *transport, uint32_t offset)
{
	struct weir_nvme_member *member = member_of(transport);
	struct weir_nvme_shared *controller = member->controller;
	uint32_t value = read_raw(member, offset);

	if (offset != NVME_REGISTER_CSTS || value == UINT32_MAX)
		return value;
	if (flag(&controller->halted))
		return flag(&controller->asked) ? UINT32_MAX : value | NVME_CSTS_FATAL;
	return is_behind(member) ? 0 : value;
}

uint64_t weir_nvme_member_doorbell(struct weir_transport *transport, unsigned index)
{
	struct weir_nvme_member *member = member_of(transport);
	struct weir_transport *raw = member->controller->raw.transport;

	if (!member->registers)
		return raw->ops->doorbell(raw, index);
	return (uint64_t)(uintptr_t)member->registers + NVME_REGISTER_DOORBELLS +
	       (uint64_t)index * transport->doorbell_bytes;
}

static int halted_fail(const struct weir_nvme_member *member)
{
	return weir_fail(EIO,
			 "storage \"%s\": %s was given up; close all of its storages, and open them again",
			 member->uri, member->controller->name);
}

static int ask_queues(struct weir_nvme_shared *controller, bool shadow, unsigned *granted)
{
	unsigned wanted = controller->raw.transport->most_queues;
	unsigned most = MOST_SHADOW_QUEUES * sizeof(uint32_t) / controller->raw.transport->doorbell_bytes;

	if (shadow && wanted > most)
		wanted = most;
	return weir_admin_queue_count(&controller->admin, wanted, granted);
}

static int check_granted(struct weir_nvme_shared *controller, unsigned granted)
{
	if (!controller->granted)
		controller->granted = granted;
	if (granted >= controller->granted)
		return 0;
	return weir_fail(EIO, "%s granted %u queues after its reset, and %u before", controller->name,
			 granted, controller->granted);
}

int weir_nvme_shared_start(struct weir_nvme_shared *controller, enum weir_shadow shadow)
{
	struct weir_admin *admin = &controller->admin;
	uint64_t bus = (uintptr_t)controller->memory;
	unsigned granted = 0;
	bool use;
	int error = weir_admin_enable(admin, controller->raw.transport, controller->memory, bus);

	if (!error)
		error = weir_admin_controller(admin, &controller->space);
	if (error)
		return error;
	use = shadow != WEIR_SHADOW_OFF && controller->space.shadow_doorbells && controller->shadow_pages;
	error = ask_queues(controller, use, &granted);
	if (!error)
		error = check_granted(controller, granted);
	if (!error && use)
		error = weir_admin_shadow(admin, controller->shadow_pages,
					  (uintptr_t)controller->shadow_pages);
	return error;
}

/* With CC.EN = 0 no queue pair is left. */
static int stop(struct weir_nvme_shared *controller)
{
	int error;

	set_flag(&controller->stopping);
	error = weir_admin_stop(&controller->admin);
	for (unsigned i = 0; i < controller->granted && !error; i++)
		controller->numbers[i].sq = controller->numbers[i].cq = false;
	if (!error)
		set_generation(&controller->generation, controller->generation + 1);
	/* shared.N2: after the generation; pairs with shared.N3 */
	__atomic_store_n(&controller->stopping, false, __ATOMIC_RELEASE);
	return error;
}

int weir_nvme_shared_reset(struct weir_nvme_shared *controller)
{
	bool shadow = controller->shadow_file >= 0;
	int error = stop(controller);

	if (error)
		return error;
	error = weir_nvme_shared_start(controller, shadow ? WEIR_SHADOW_AUTO : WEIR_SHADOW_OFF);
	controller->down = error != 0;
	return error;
}

int weir_nvme_member_restart(struct weir_transport *transport)
{
	struct weir_nvme_member *member = member_of(transport);
	struct weir_nvme_shared *controller = member->controller;
	struct weir_transport *raw = controller->raw.transport;
	int error = 0;

	pthread_mutex_lock(&controller->lock);
	if (controller->halted)
		error = halted_fail(member);
	else if (!is_behind(member) && raw->ops->restart)
		error = raw->ops->restart(raw);
	pthread_mutex_unlock(&controller->lock);
	return error;
}

/* Unless another storage's reset has ended this one's queue pairs already. */
int weir_nvme_member_reset(struct weir_transport *transport)
{
	struct weir_nvme_member *member = member_of(transport);
	struct weir_nvme_shared *controller = member->controller;
	int error = 0;

	pthread_mutex_lock(&controller->lock);
	if (controller->halted || member->dead)
		error = halted_fail(member);
	else if (!is_behind(member) || controller->down)
		error = weir_nvme_shared_reset(controller);
	if (!error)
		set_generation(&member->generation, controller->generation);
	pthread_mutex_unlock(&controller->lock);
	return error;
}

void weir_nvme_member_stats(struct weir_transport *transport, struct weir_transport_stats *stats)
{
	struct weir_transport *raw = member_of(transport)->controller->raw.transport;

	raw->ops->stats(raw, stats);
}

bool weir_nvme_member_wanted(struct weir_transport *transport)
{
	struct weir_nvme_shared *controller = member_of(transport)->controller;
	struct weir_transport *raw = controller->raw.transport;
	bool wanted;

	pthread_mutex_lock(&controller->lock);
	wanted = raw->ops->wanted && raw->ops->wanted(raw);
	if (wanted)
		set_flag(&controller->asked);
	pthread_mutex_unlock(&controller->lock);
	return wanted;
}

/* Once no storage's lanes ring any more: all of them are asked. */
void weir_nvme_member_give_way(struct weir_transport *transport)
{
	struct weir_nvme_member *member = member_of(transport);
	struct weir_nvme_shared *controller = member->controller;
	struct weir_transport *raw = controller->raw.transport;
	bool all = true;

	if (!flag(&controller->asked))
		return;
	pthread_mutex_lock(&controller->lock);
	member->yielded = true;
	for (const struct weir_nvme_member *other = controller->members; other; other = other->next)
		all = all && other->yielded;
	if (all && raw->ops->give_way)
		raw->ops->give_way(raw);
	pthread_mutex_unlock(&controller->lock);
}

/* What the controller still has of a storage, as far as it was told. */
static bool has_queues(const struct weir_nvme_member *member)
{
	const struct weir_nvme_shared *controller = member->controller;

	for (unsigned i = 0; i < controller->granted; i++)
		if (controller->numbers[i].owner == member &&
		    (controller->numbers[i].sq || controller->numbers[i].cq))
			return true;
	return false;
}

static bool others_live(const struct weir_nvme_member *member)
{
	for (const struct weir_nvme_member *other = member->controller->members; other; other = other->next)
		if (other != member && !other->dead && !other->finished)
			return true;
	return false;
}

static int halt_all(struct weir_nvme_shared *controller)
{
	struct weir_transport *raw = controller->raw.transport;

	set_flag(&controller->halted);
	return raw->ops->halt ? raw->ops->halt(raw) : -ENOTSUP;
}

static bool is_ready(const struct weir_nvme_shared *controller)
{
	struct weir_transport *raw = controller->raw.transport;

	return (raw->ops->read32(raw, NVME_REGISTER_CSTS) & (NVME_CSTS_READY | NVME_CSTS_FATAL)) ==
	       NVME_CSTS_READY;
}

/* End one storage's queue pairs, for good. Where others go on, a reset is enough. */
static int end_queues(struct weir_nvme_member *member)
{
	struct weir_nvme_shared *controller = member->controller;

	if (!controller->halted && !controller->asked && others_live(member) && is_ready(controller) &&
	    (!has_queues(member) || weir_nvme_shared_reset(controller) == 0))
		return 0;
	return halt_all(controller);
}

int weir_nvme_member_halt(struct weir_transport *transport)
{
	struct weir_nvme_member *member = member_of(transport);
	int error;

	pthread_mutex_lock(&member->controller->lock);
	member->dead = true;
	error = end_queues(member);
	pthread_mutex_unlock(&member->controller->lock);
	return error;
}

void weir_nvme_shared_drop(struct weir_nvme_member *member)
{
	struct weir_nvme_shared *controller = member->controller;

	if (has_queues(member) && others_live(member))
		(void)end_queues(member);
	for (unsigned i = 0; i < controller->granted; i++)
		if (controller->numbers[i].owner == member)
			controller->numbers[i] = (struct weir_nvme_number){ .owner = NULL };
}

const char *weir_nvme_member_path(struct weir_transport *transport)
{
	struct weir_transport *raw = member_of(transport)->controller->raw.transport;

	return raw->ops->path(raw);
}

/* What the controller has of a queue pair, by a command that it has carried out, or may have. */
static void note_queue(struct weir_nvme_shared *controller, const struct nvme_sqe *command, bool done)
{
	unsigned id = command->cdw10 & 0xffff;
	uint8_t opcode = (uint8_t)command->cdw0;
	struct weir_nvme_number *number =
		id && id <= controller->granted ? &controller->numbers[id - 1] : NULL;

	if (!number)
		return;
	if (opcode == NVME_ADMIN_CREATE_CQ)
		number->cq = true;
	else if (opcode == NVME_ADMIN_CREATE_SQ)
		number->sq = true;
	else if (opcode == NVME_ADMIN_DELETE_CQ && done)
		number->cq = false;
	else if (opcode == NVME_ADMIN_DELETE_SQ && done)
		number->sq = false;
}

int weir_nvme_member_admin(struct weir_transport *transport, const struct nvme_sqe *command, unsigned ms,
			   uint32_t *result)
{
	struct weir_nvme_member *member = member_of(transport);
	struct weir_nvme_shared *controller = member->controller;
	int status;

	pthread_mutex_lock(&controller->lock);
	if (is_behind(member)) {
		status = weir_fail(
			EIO, "another storage of this process had %s reset before the admin command was sent",
			controller->name);
	} else {
		controller->admin.command_ms = ms;
		status = weir_admin_pass(&controller->admin, command, result);
		if (status <= 0) /* 0: done. Negative: unanswered, so that it may be done yet */
			note_queue(controller, command, !status);
	}
	pthread_mutex_unlock(&controller->lock);
	return status;
}

unsigned weir_nvme_shared_free(const struct weir_nvme_shared *controller)
{
	unsigned free = 0;

	for (unsigned i = 0; i < controller->granted; i++)
		free += !controller->numbers[i].owner;
	return free;
}

/* The words of a queue pair that is to be created are 0, whoever had its number before. */
static void clear_shadow(struct weir_nvme_shared *controller, unsigned id)
{
	size_t bytes = 2 * (size_t)controller->raw.transport->doorbell_bytes;
	char *pages = controller->shadow_pages;

	if (controller->shadow_file < 0)
		return;
	memset(pages + id * bytes, 0, bytes);
	memset(pages + NVME_PAGE_BYTES + id * bytes, 0, bytes);
}

int weir_nvme_member_adopt(struct weir_transport *transport, const struct weir_rings *rings)
{
	struct weir_nvme_member *member = member_of(transport);
	struct weir_nvme_shared *controller = member->controller;
	unsigned i = 0;

	pthread_mutex_lock(&controller->lock);
	if (rings->index < member->count)
		i = member->ids[rings->index] - 1;
	else
		while (i < controller->granted && controller->numbers[i].owner)
			i++;
	if (i < controller->granted) {
		if (!member->count)
			set_generation(&member->generation, controller->generation);
		controller->numbers[i].owner = member;
		clear_shadow(controller, i + 1);
		if (rings->index >= member->count)
			member->ids[member->count++] = i + 1;
	}
	pthread_mutex_unlock(&controller->lock);
	if (i < controller->granted)
		return 0;
	return weir_fail(EBUSY,
			 "storage \"%s\": %s has %u I/O queue pairs; this storage got %u of them, and other "
			 "storages of this process "
			 "have the rest: ask for fewer (queues=N)",
			 member->uri, controller->name, controller->granted, member->count);
}

unsigned weir_nvme_member_queue_id(struct weir_transport *transport, uint32_t index)
{
	return member_of(transport)->ids[index];
}

void *weir_nvme_member_shadow(struct weir_transport *transport)
{
	return member_of(transport)->shadow;
}
