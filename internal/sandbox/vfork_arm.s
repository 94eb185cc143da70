#include "textflag.h"

// func vfork(number, a0, a1 uintptr) (pid, errno uintptr)
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-20
	MOVW number+0(FP), R7
	MOVW a0+4(FP), R0
	MOVW a1+8(FP), R1
	MOVW $0, R2
	MOVW $0, R3
	MOVW $0, R4
	MOVW $0, R5
	SWI  $0
	MOVW $0, R2
	CMN  $4095, R0
	BHS  failed
	MOVW R0, pid+12(FP)
	MOVW R2, errno+16(FP)
	RET
failed:
	RSB  $0, R0, R0
	MOVW R2, pid+12(FP)
	MOVW R0, errno+16(FP)
	RET
