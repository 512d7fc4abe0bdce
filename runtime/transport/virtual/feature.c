/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/feature.c: Set Features and Get Features, Base 2.0 section 5.27.
 *
 * Owns: what each feature value means. Features that steer nothing here keep
 * the value they were given and start as zero; none can be saved.
 */
#include "parts.h"

enum { HOST_BEHAVIOR_BYTES = 512 };

#define FEATURE_SAVE 0x80000000u /* cdw10: save across power cycles */

enum {
	FEATURE_ARBITRATION = 0x01,
	FEATURE_LBA_RANGE = 0x03,
};

static bool known(u32 feature)
{
	return feature == NVME_FEATURE_HOST_BEHAVIOR ||
	       (feature >= FEATURE_ARBITRATION && feature < VIRTUAL_FEATURES && feature != FEATURE_LBA_RANGE);
}

static u32 least(u32 a, u32 b)
{
	return a < b ? a : b;
}

static u32 queue_counts(const struct virtual_admin *admin)
{
	return (admin->sq_allowed - 1) | (admin->cq_allowed - 1) << 16;
}

/* Both counts are zero based; they hold until the next reset. */
static u32 set_queue_counts(struct weir_virtual *controller, u32 value, u32 *result)
{
	struct virtual_admin *admin = &controller->admin;
	u32 most = controller->options.max_queue_pairs;

	if ((value & 0xffff) == 0xffff || value >> 16 == 0xffff)
		return virtual_refuse(NVME_STATUS_INVALID_FIELD);
	if (admin->live)
		return virtual_refuse(NVME_STATUS_COMMAND_SEQUENCE);
	admin->sq_allowed = least((value & 0xffff) + 1, most);
	admin->cq_allowed = least((value >> 16) + 1, most);
	*result = queue_counts(admin);
	return NVME_STATUS_SUCCESS;
}

/* Of Host Behavior Support only ACRE: completions may say which retry delay is meant. Section 5.27.1.18. */
static u32 set_host_behavior(struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	u8 behavior[HOST_BEHAVIOR_BYTES];
	u32 status = virtual_admin_receive(controller, sqe, behavior, sizeof(behavior));

	if (!status && behavior[0] > 1)
		status = virtual_refuse(NVME_STATUS_INVALID_FIELD);
	if (!status)
		store_relaxed_u32(&controller->retry_delays, behavior[0]);
	return status;
}

static u32 get_host_behavior(struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	u8 behavior[HOST_BEHAVIOR_BYTES] = { (u8)load_relaxed_u32(&controller->retry_delays) };

	return virtual_admin_send(controller, sqe, behavior, sizeof(behavior));
}

u32 virtual_set_features(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	u32 feature = sqe->cdw10 & 0xff;

	if (!known(feature))
		return virtual_refuse(NVME_STATUS_INVALID_FIELD);
	if (sqe->cdw10 & FEATURE_SAVE)
		return virtual_refuse(NVME_STATUS_FEATURE_NOT_SAVEABLE);
	if (feature == NVME_FEATURE_NUMBER_OF_QUEUES)
		return set_queue_counts(controller, sqe->cdw11, result);
	if (feature == NVME_FEATURE_HOST_BEHAVIOR)
		return set_host_behavior(controller, sqe);
	if (feature == NVME_FEATURE_VOLATILE_WRITE_CACHE)
		store_relaxed_u32(&controller->write_through, !(sqe->cdw11 & 1));
	controller->admin.features[feature] = sqe->cdw11;
	return NVME_STATUS_SUCCESS;
}

u32 virtual_get_features(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	u32 feature = sqe->cdw10 & 0xff;

	if (!known(feature))
		return virtual_refuse(NVME_STATUS_INVALID_FIELD);
	if (feature == NVME_FEATURE_HOST_BEHAVIOR)
		return get_host_behavior(controller, sqe);
	if (feature == NVME_FEATURE_NUMBER_OF_QUEUES)
		*result = queue_counts(&controller->admin);
	else if (feature == NVME_FEATURE_VOLATILE_WRITE_CACHE)
		*result = !load_relaxed_u32(&controller->write_through);
	else
		*result = controller->admin.features[feature];
	return NVME_STATUS_SUCCESS;
}
