/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The System V x86-64 switch: callee-saved registers go on the old stack, the
 * stack pointer changes, they come off the new one. MXCSR and the x87 control
 * word are process-wide settings here and stay.
 */
	.text
	.globl	weir_fiber_swap
	.hidden	weir_fiber_swap
	.type	weir_fiber_swap, @function
weir_fiber_swap:		/* (void **save, void *load) */
	endbr64
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
	.size	weir_fiber_swap, .-weir_fiber_swap

	.globl	weir_fiber_begin
	.hidden	weir_fiber_begin
	.type	weir_fiber_begin, @function
weir_fiber_begin:		/* first entry: r12 = entry, r13 = argument */
	endbr64
	xorl	%ebp, %ebp
	movq	%r13, %rdi
	callq	*%r12
	ud2
	.size	weir_fiber_begin, .-weir_fiber_begin
	.section .note.GNU-stack, "", @progbits
