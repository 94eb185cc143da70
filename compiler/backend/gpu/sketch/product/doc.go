// Package product is what sketches of products on a GPU share: which axes are cut into tiles, and how what a tile
// reads again and again comes through the memory that a block shares. Begin to read at Product.
package product
