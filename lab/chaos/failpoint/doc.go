// Package failpoint builds programs in which failpoints are in force. A failpoint is a comment in the source,
//
//	// gofail: var beforeSync struct{}
//
// as gofail has them and bbolt, among others, uses them. The ordinary compiler passes it over, so it costs nothing.
// Build compiles with an overlay in which each such comment is a call, and what the program is to do there is in its
// environment:
//
//	TILTH_FAILPOINTS='beforeSync=3:kill;afterSync=1:sleep:50;lackOfDiskSpace=7:error:disk full'
//
// The 3rd time that beforeSync is met the process kills itself, the 1st that afterSync is it sleeps 50 ms. A point
// with a type, such as
//
//	// gofail: var lackOfDiskSpace string
//	// return errors.New(lackOfDiskSpace)
//
// runs the lines below it with the text of its error. A point that fires says so in a line on standard error; see
// Fired.
package failpoint
