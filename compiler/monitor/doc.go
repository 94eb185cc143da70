// Package monitor is the monitor of boards: a small program that a board runs, which loads candidates over a serial
// link and counts their cycles. src has its sources; link.h there is the protocol, which package link speaks from Go
// and the harness from C. Begin with Boards and Build.
package monitor
