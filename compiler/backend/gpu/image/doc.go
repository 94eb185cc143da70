// Package image makes files of candidates for devices with drivers: a table of launches, and behind it the code that
// the driver loads; and translation units of packages, which have such code in them. src has their reader, in C. What
// the code is, each backend says. Begin with Print and Module.
package image
