/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store.h: which of several daemons of one array is active.
 *
 * Owns: the election. A daemon keeps nothing on disk, and reads all it knows from the engines; so all that
 * others have to know is who is active. That is one key of a store, which lasts as long as its lease. A
 * daemon that may not have the lease any more ends at once, without another word to an engine.
 */
#ifndef WEIR_VOLUMED_STORE_H
#define WEIR_VOLUMED_STORE_H

struct store;

/**
 * store_open() - prepare; asks nothing of the store yet
 * @uri: etcd://HOST:PORT[,HOST:PORT...][/ARRAY], etcds:// for TLS with the system's authorities
 * @who: what other daemons say of this one
 * @seconds: how long the store waits for a daemon that says nothing
 *
 * Return: 0 or a negative errno with a sentence.
 */
int store_open(const char *uri, const char *who, unsigned seconds, struct store **out);

/** store_take() - become active, from then on until store_close(). Return: 0; -EAGAIN: another daemon is, or
 * the store does not answer, with a sentence; or another negative errno with one */
int store_take(struct store *store);

/** store_check() - before a command to an engine: ends the process unless the lease is this daemon's yet. Any
 * thread; no message */
void store_check(const struct store *store);

/** store_close() - another daemon may be active now; NULL: nothing */
void store_close(struct store *store);

#endif
