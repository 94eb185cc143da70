// Package fairqueue shares servers among owners in proportion to their weights, and an owner's part among its jobs in
// proportion to theirs, whatever each of them asks for. It knows no clock: what a server spent is told to it.
//
// It is start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) on two levels, with many servers at a time (as
// SFQ(D) of Jin, Chase and Kaur, SIGMETRICS 2004). A flow's tag is the virtual time at which its next item starts:
// each item served moves it on by cost/weight. The flow with the least tag is served next, and the virtual time is the
// tag of what was served last. A flow that begins to wait starts at the virtual time: having been idle earns nothing.
// Costs are not known beforehand: they are estimated when an item is taken, and put right when it is done.
//
// Between two flows that wait throughout an interval, the seconds served for each unit of weight differ by no more
// than the longest items of the two over their weights, times the number of servers.
package fairqueue
