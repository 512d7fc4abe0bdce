/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_wire: in the guest, look at the packets of loopback until SIGTERM, and say how many held a word of
 * pattern SEED from byte FIRST_BYTE to FIRST_BYTE + 511.
 *
 *   vm_wire SEED FIRST_BYTE
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "../rig/kernels.h"

enum { PACKET_BYTES = 1 << 17, ROOM_BYTES = 64 << 20, WORDS = 64 };

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

static int listen_to_loopback(void)
{
	const struct sockaddr_ll loopback = { .sll_family = AF_PACKET,
					      .sll_protocol = htons(ETH_P_ALL),
					      .sll_ifindex = (int)if_nametoindex("lo") };
	const struct timeval step = { .tv_usec = 200000 };
	int file = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)), room = ROOM_BYTES;

	if (file < 0 || bind(file, (const struct sockaddr *)&loopback, sizeof(loopback)) != 0 ||
	    setsockopt(file, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0 ||
	    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof(step)) != 0)
		return -1;
	return file;
}

static bool holds(const char *packet, size_t bytes, u64 seed, u64 first)
{
	for (u64 i = 0; i < WORDS; i++) {
		u64 word = test_word(seed, first / sizeof(word) + i);

		if (memmem(packet, bytes, &word, sizeof(word)))
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	static char packet[PACKET_BYTES];
	struct sigaction action = { .sa_handler = end };
	struct tpacket_stats stats = { 0 };
	socklen_t length = sizeof(stats);
	unsigned long held = 0;
	ssize_t bytes;
	int file;

	if (argc != 3)
		return fprintf(stderr, "usage: vm_wire SEED FIRST_BYTE\n"), 2;
	file = listen_to_loopback();
	if (file < 0 || sigaction(SIGTERM, &action, NULL) != 0)
		return fprintf(stderr, "vm_wire: loopback: %s\n", strerror(errno)), 2;
	printf("vm_wire: listening\n");
	(void)fflush(stdout);
	while ((bytes = recv(file, packet, sizeof(packet), ended ? MSG_DONTWAIT : 0)) > 0 || !ended)
		held += bytes > 0 &&
			holds(packet, (size_t)bytes, strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0));
	(void)getsockopt(file, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
	printf("vm_wire: %lu of %u packets held it, %u were missed\n", held, stats.tp_packets,
	       stats.tp_drops);
	return 0;
}
