// Package failpoint builds programs with active failpoints. A failpoint is a comment in the source,
//
//	// gofail: var beforeSync struct{}
//
// in the syntax of gofail, which bbolt also uses. The ordinary compiler ignores it, so it costs nothing. Build
// compiles with an overlay that replaces each such comment by a call. An environment variable configures the actions:
//
//	TILTH_FAILPOINTS='beforeSync=3:kill;afterSync=1:sleep:50;lackOfDiskSpace=7:error:disk full'
//
// The process kills itself at the third execution of beforeSync, and sleeps 50 ms at the first of afterSync. A
// failpoint with a type, such as
//
//	// gofail: var lackOfDiskSpace string
//	// return errors.New(lackOfDiskSpace)
//
// runs the lines below it with the text of its error. A failpoint that fires prints a line on standard error; see
// Fired.
package failpoint
