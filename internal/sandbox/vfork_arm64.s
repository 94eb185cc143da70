#include "textflag.h"

// func vfork(number, a0, a1 uintptr) (pid, errno uintptr)
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-40
	MOVD number+0(FP), R8
	MOVD a0+8(FP), R0
	MOVD a1+16(FP), R1
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD ZR, R5
	SVC
	CMN  $4095, R0
	BCS  failed
	MOVD R0, pid+24(FP)
	MOVD ZR, errno+32(FP)
	RET
failed:
	NEG  R0, R0
	MOVD ZR, pid+24(FP)
	MOVD R0, errno+32(FP)
	RET
