/* SPDX-License-Identifier: BSD-3-Clause */
/* A sharing policy of a user's: no line 3, one guest at most, owners stay (share_policy_test.c). */
WEIR_FN u32 weir_share_policy_admit(u64 line, u64 thread)
{
	(void)thread;
	return line != 3;
}

WEIR_FN u32 weir_share_policy_join(u64 line, u64 thread, u32 state, u32 refs)
{
	(void)line;
	(void)thread;
	(void)state;
	return refs < 2;
}

WEIR_FN u32 weir_share_policy_owner_stays(u64 line, u64 thread, u32 refs)
{
	(void)line;
	(void)thread;
	(void)refs;
	return 1;
}
