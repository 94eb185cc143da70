// Package peer times single operators of other libraries, each in a process of its own, in turns with ours.
//
// The programs are in src; scripts/peers.sh builds them. They say who they are ("peer oneDNN 3.12.1"), then answer
// each line with one line:
//
//	prepare convolution ELEMENT BATCH ROWS COLUMNS IN OUT KERNEL STRIDE PADDING DILATION GROUPS
//	prepare product ELEMENT ROWS COLUMNS DEPTH
//	    ready IMPLEMENTATION, or unsupported WHY
//	time SECONDS
//	    samples S1 S2 ..., in seconds
package peer
