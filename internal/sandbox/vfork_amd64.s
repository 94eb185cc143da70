#include "textflag.h"

// func vfork(number, a0, a1 uintptr) (pid, errno uintptr)
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-40
	MOVQ number+0(FP), AX
	MOVQ a0+8(FP), DI
	MOVQ a1+16(FP), SI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	XORL R9, R9
	POPQ R12 // the return address, whose place on the stack the child's calls overwrite
	SYSCALL
	PUSHQ R12
	CMPQ AX, $-4095
	JCC  failed
	MOVQ AX, pid+24(FP)
	MOVQ $0, errno+32(FP)
	RET
failed:
	NEGQ AX
	MOVQ $0, pid+24(FP)
	MOVQ AX, errno+32(FP)
	RET
