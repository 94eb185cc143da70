// Command racing says whether the short measurements of a search find the same winners as long ones. Of tasks of a
// model it takes candidates, close ones among them, and measures each three times: as a search does, racing the best
// so far; as finalists, in turns; and long, in turns for many samples. For every pair that took turns it compares who
// wins.
//
//	go run ./lab/bench/racing -build                    builds the candidates only
//	go run ./lab/bench/racing -skip 0 -tasks 4          measures four tasks of resnet-50, keeps their pairs
//	go run ./lab/bench/racing -table                    the table over all pairs kept
package main
