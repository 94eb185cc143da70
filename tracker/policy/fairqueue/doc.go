// Package fairqueue shares servers among owners in proportion to their weights, and an owner's part among its jobs in
// proportion to theirs, regardless of demand. It has no clock: callers report the time that servers spent.
//
// It implements start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) on two levels with multiple servers (as
// in SFQ(D) by Jin, Chase and Kaur, SIGMETRICS 2004). A flow's tag is the virtual start time of its next item; each
// item served advances it by cost/weight. The flow with the smallest tag is served next, and virtual time is the tag
// of the item served last. A flow that starts to wait starts at virtual time, so idling earns no credit. Costs are
// estimated when an item is taken and corrected when it is done.
//
// Between two flows that wait throughout an interval, the seconds served per unit of weight differ by at most the sum
// of their longest items over their weights, times the number of servers.
package fairqueue
