// Command scale measures what a result costs a tracker, from few devices to many and from few records to many, and
// draws it.
//
//	go run ./lab/bench/scale -tilth bin/tilth -out docs/scale.svg
//
// Every point is a run of tilth simulate, at the same rate of results. What each said is kept beside the drawing as
// JSON.
package main
