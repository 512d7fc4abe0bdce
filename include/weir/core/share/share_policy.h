/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/share/share_policy.h: which requests share buffers, and who propagates a changed one.
 *
 * Owns: the default answers. -Duser_share_policy=FILE.h builds another header in their place,
 * which defines the same three functions (AGILE, section 3.4.1).
 * They are asked outside of any lock, decide by their arguments alone, and never wait.
 */
#ifndef WEIR_CORE_SHARE_POLICY_H
#define WEIR_CORE_SHARE_POLICY_H

#include <weir/abi.h>

#ifdef WEIR_USER_SHARE_POLICY
#include WEIR_USER_SHARE_POLICY
#else

/**
 * weir_share_policy_admit() - is a buffer to be registered for a line that is in nobody's?
 * @line: line of its array
 * @thread: the lane that asks
 *
 * 0: the request is a plain copy, which nobody else sees.
 */
WEIR_FN u32 weir_share_policy_admit(u64 line, u64 thread)
{
	(void)line;
	(void)thread;
	return 1;
}

/**
 * weir_share_policy_join() - is a request given the pointer of another's buffer?
 * @line: line of its array
 * @thread: the lane that asks
 * @state: enum weir_share_state before it joins
 * @refs: holders before it joins
 *
 * 0: it copies the buffer as it is into its own.
 */
WEIR_FN u32 weir_share_policy_join(u64 line, u64 thread, u32 state, u32 refs)
{
	(void)line;
	(void)thread;
	(void)state;
	(void)refs;
	return 1;
}

/**
 * weir_share_policy_owner_stays() - must the owner of a changed buffer outlast its guests?
 * @line: line of its array
 * @thread: the owner
 * @refs: holders, it included
 *
 * 0: it may leave before them, and the last guest propagates the buffer for it. Not 0:
 * weir_share_release() refuses it with WEIR_E_SHARED as long as there are guests, so that the
 * owner itself propagates, as AGILE has it. It cannot wait there instead: a guest may be
 * another lane of its wave, which would never come to let go.
 */
WEIR_FN u32 weir_share_policy_owner_stays(u64 line, u64 thread, u32 refs)
{
	(void)line;
	(void)thread;
	(void)refs;
	return 0;
}

#endif
#endif
