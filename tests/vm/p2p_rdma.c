/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_rdma: the pointer to a range of a window registered with an RDMA device (ibv_reg_mr()), beside memory of
 * the host's; two queue pairs of that device move bytes between both.
 *
 *   vm_rdma NODE DISK move             the disk's first bytes (RANGE) to the window, by RDMA writes, and back
 *   vm_rdma NODE DISK given            giving the range back waits for the registration's end
 *   vm_rdma NODE DISK gone COMMAND     COMMAND ends the window meanwhile: it waits, too
 *   vm_rdma NODE DISK killed           a process ends with a registration
 */
#include "p2p_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* No multiple of 1 MiB: where such a region ends, Soft-RoCE of Linux 6.1 reads one word behind its table of
 * pages. */
enum {
	RANGE = (1 << 20) + (1 << 16),
	PART = 60000,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
};

/** struct context - @host: as long as the range, twice; @ends: of one connection */
struct setup {
	struct ibv_context *device;
	struct ibv_pd *domain;
	struct ibv_cq *completions;
	struct ibv_qp *ends[2];
	struct ibv_mr *host_region;
	struct ibv_mr *region;
	uint8_t *host;
	struct range range;
};

/* The device's address as an IPv4 one. */
static int own_gid(struct setup *setup, union ibv_gid *gid)
{
	for (int i = 0; i < 16; i++)
		if (!ibv_query_gid(setup->device, 1, i, gid) && gid->raw[10] == 0xff && gid->raw[11] == 0xff)
			return i;
	give_up("the RDMA device has no IPv4 address");
}

static void ready(struct setup *setup, struct ibv_qp *end, uint32_t other)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL };
	union ibv_gid gid;
	int index = own_gid(setup, &gid);

	check(!ibv_modify_qp(end, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      "INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = other,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = gid, .sgid_index = (uint8_t)index, .hop_limit = 1 } }
	};
	check(!ibv_modify_qp(end, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};
	check(!ibv_modify_qp(end, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
}

static void connect_ends(struct setup *setup)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = setup->completions,
		.recv_cq = setup->completions,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};

	for (unsigned i = 0; i < 2; i++) {
		setup->ends[i] = ibv_create_qp(setup->domain, &attr);
		check(setup->ends[i], "no queue pair of the RDMA device");
	}
	for (unsigned i = 0; i < 2; i++)
		ready(setup, setup->ends[i], setup->ends[!i]->qp_num);
}

static void begin(struct setup *setup, const char *node, const char *disk)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	int file = open(disk, O_RDONLY | O_DIRECT | O_CLOEXEC);

	check(devices && *devices, "there is no RDMA device");
	setup->device = ibv_open_device(*devices);
	check(setup->device, "the RDMA device cannot be opened");
	setup->domain = ibv_alloc_pd(setup->device);
	setup->completions = ibv_create_cq(setup->device, 16, NULL, NULL, 0);
	check(setup->domain && setup->completions, "the RDMA device has nothing left");
	connect_ends(setup);
	setup->host = mmap(NULL, 2 * RANGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(setup->host != MAP_FAILED && file >= 0 && pread(file, setup->host, RANGE, 0) == RANGE,
	      "cannot read %s", disk);
	close(file);
	setup->host_region = ibv_reg_mr(setup->domain, setup->host, 2 * RANGE, ALL);
	check(setup->host_region, "memory of the host's is refused");
	setup->range = take(open_node(node), 0, RANGE);
	setup->region = ibv_reg_mr(setup->domain, setup->range.memory, RANGE, ALL);
	check(setup->region, "the pointer to a range is refused");
}

/* Return: the completion's status. */
static enum ibv_wc_status move(struct setup *setup, enum ibv_wr_opcode opcode, uint64_t from, uint64_t to,
			       uint32_t bytes)
{
	struct ibv_sge host = { (uintptr_t)setup->host + from, bytes, setup->host_region->lkey };
	struct ibv_send_wr request = { .sg_list = &host,
				       .num_sge = 1,
				       .opcode = opcode,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = { (uintptr_t)setup->range.memory + to,
						    setup->region->rkey } },
			   *bad;
	struct ibv_wc completion;
	time_t begin = time(NULL);

	check(!ibv_post_send(setup->ends[0], &request, &bad), "a request is not taken");
	while (!ibv_poll_cq(setup->completions, 1, &completion))
		check(time(NULL) - begin < 60, "a request does not end");
	return completion.status;
}

static void move_well(struct setup *setup, enum ibv_wr_opcode opcode, uint64_t from, uint64_t to,
		      uint32_t bytes)
{
	enum ibv_wc_status status = move(setup, opcode, from, to, bytes);

	check(status == IBV_WC_SUCCESS, "a request ended with: %s", ibv_wc_status_str(status));
}

static uint32_t part_at(uint64_t at)
{
	return at + PART < RANGE ? PART : (uint32_t)(RANGE - at);
}

static void step_move(struct setup *setup)
{
	check(memcmp(setup->host, setup->range.memory, RANGE), "the bytes are there before they are moved");
	for (uint64_t at = 0; at < RANGE; at += PART)
		move_well(setup, IBV_WR_RDMA_WRITE, at, at, part_at(at));
	for (uint64_t at = 0; at < RANGE; at += PART)
		move_well(setup, IBV_WR_RDMA_READ, RANGE + at, at, part_at(at));
	check(!memcmp(setup->host, setup->host + RANGE, RANGE),
	      "what comes back are not the bytes that went there");
	check(!ibv_dereg_mr(setup->region), "cannot deregister");
	drop(&setup->range);
}

static void on_alarm(int number)
{
	(void)number;
}

/* What a call that a signal ends leaves: the range belongs to this file until the RDMA device has let go of
 * it. */
static void step_given(struct setup *setup)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct range other;

	sigaction(SIGALRM, &action, NULL);
	alarm(2);
	expect(setup->range.node, try_deregister(setup->range.node, setup->range.handle), EINTR,
	       "giving back what an RDMA device has");
	expect(setup->range.node, try_register(setup->range.node, 0, RANGE, 0, &other), EBUSY,
	       "to register it again");
	move_well(setup, IBV_WR_RDMA_WRITE, 0, 0, PART);
	check(!ibv_reg_mr(setup->domain, setup->range.memory, RANGE, ALL) && errno == EFAULT,
	      "registered after it was given back");
	check(!ibv_dereg_mr(setup->region), "cannot deregister");
	check(!try_deregister(setup->range.node, setup->range.handle) || errno == ENOENT, "it is not free");
	check(!try_register(setup->range.node, 0, RANGE, 0, &other), "it cannot be had again");
}

static pid_t start(const char *command)
{
	pid_t child = fork();

	check(child >= 0, "fork");
	if (!child) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return child;
}

static void step_gone(struct setup *setup, const char *command)
{
	pid_t child = start(command);
	int status;

	sleep(12); /* until the kernel's log tells of it */
	check(waitpid(child, &status, WNOHANG) == 0, "the window went while an RDMA device had it: %#x",
	      status);
	move_well(setup, IBV_WR_RDMA_WRITE, 0, 0, PART);
	check(!ibv_reg_mr(setup->domain, setup->range.memory, RANGE, ALL) && errno == EFAULT,
	      "registered after the window's end");
	check(!ibv_dereg_mr(setup->region), "cannot deregister");
	check(waitpid(child, &status, 0) == child && !status, "the window did not go: %#x", status);
}

/* The library does not live on in a child: it is one from the beginning. */
static void killed(char **argv)
{
	struct setup setup = { 0 };
	pid_t child = fork();
	int status;

	check(child >= 0, "fork");
	if (!child) {
		begin(&setup, argv[1], argv[2]);
		move_well(&setup, IBV_WR_RDMA_WRITE, 0, 0, PART);
		raise(SIGKILL);
	}
	check(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	      "the child ended with %#x", status);
}

int main(int argc, char **argv)
{
	struct setup setup = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	check(argc > 3, "usage: vm_rdma NODE DISK STEP: see its source");
	if (!strcmp(argv[3], "killed")) {
		killed(argv);
		return 0;
	}
	begin(&setup, argv[1], argv[2]);
	if (!strcmp(argv[3], "move"))
		step_move(&setup);
	else if (!strcmp(argv[3], "given"))
		step_given(&setup);
	else if (!strcmp(argv[3], "gone") && argc > 4)
		step_gone(&setup, argv[4]);
	else
		give_up("no step %s", argv[3]);
	printf("%s: good\n", argv[3]);
	return 0;
}
