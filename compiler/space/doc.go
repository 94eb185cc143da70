// Package space is the sets of candidate schedules that searches move about in, whatever device they are for. A
// backend's sketch gives the knobs, the numbers that it leaves open; a point chooses a value for each knob, and
// applying it makes a schedule. Points are drawn, changed, crossed, counted, printed and read here, in the same way
// for all sketches.
package space
