// Package boardmonitor provides the boards' monitor: a small program that loads candidates over a serial link and
// counts their cycles. Its sources are in src; link.h there defines the protocol, which runner/boards implements in
// Go and the harness in C. Start with Boards and Build.
package boardmonitor
