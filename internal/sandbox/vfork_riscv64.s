#include "textflag.h"

// func vfork(number, a0, a1 uintptr) (pid, errno uintptr)
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-40
	MOV  number+0(FP), A7
	MOV  a0+8(FP), A0
	MOV  a1+16(FP), A1
	MOV  ZERO, A2
	MOV  ZERO, A3
	MOV  ZERO, A4
	MOV  ZERO, A5
	ECALL
	MOV  $-4096, T0
	BLTU T0, A0, failed
	MOV  A0, pid+24(FP)
	MOV  ZERO, errno+32(FP)
	RET
failed:
	SUB  A0, ZERO, A0
	MOV  ZERO, pid+24(FP)
	MOV  A0, errno+32(FP)
	RET
