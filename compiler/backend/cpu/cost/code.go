package cost

// Code is about how many instructions the source has: those of the innermost tiles of all statements, which are
// written out. A compiler's time grows with it.
func (a *Analysis) Code() float64 {
	code := 0.0
	for k := range a.Statements {
		x := &a.Statements[k]
		code += x.written() * x.copies()
	}
	return code
}

// written is the instructions of the innermost tile.
func (x *Statement) written() float64 {
	return x.Tile.Operations*x.Operations.Slots() + x.Tile.Loads() + x.Tile.Stores
}

// parted is how many parts loops are divided into where a border is told from the inside by their index: before it,
// inside, and after it, along rows and along columns.
const parted = 9

// copies is how often the tile is written.
func (x *Statement) copies() float64 {
	if x.Operations.Guards > 0 {
		return parted
	}
	return 1
}
