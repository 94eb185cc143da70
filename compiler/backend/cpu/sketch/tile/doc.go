// Package tile is the sketch of sums, maxima and the like, such as products, convolutions and pooling: a tile of
// results is kept in registers while the reduction runs. Begin with the drawing above Tile; positions across rows are
// in joint.go, operands that are copied in panel.go, integers in dot.go, in squares.go and, of depthwise convolutions,
// in turns.go, windows that are written out whole, as those of depthwise convolutions are, in window.go, and rows of
// padding that loops leave out in trim.go.
package tile
