/* The same for a program of this machine. */
#include <stdio.h>
#include <stdlib.h>
#include "start.h"

void print(const char *text) { fputs(text, stdout); }
void quit(int code) { exit(code); }
uint32_t ticks(void) { return 0; }
