// Package modulefile builds candidate files for devices with drivers: a table of launches, followed by the code that
// the driver loads. It also builds translation units of packages that embed such code. src holds the C reader. Each
// backend supplies the code. Start with Print and Module.
package modulefile
