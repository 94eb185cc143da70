// Package outline is the pass that finds what the bodies of parallel loops, which become functions of their own, use
// of what is around them.
package outline
