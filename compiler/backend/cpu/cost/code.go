package cost

// Code returns approximately how many instructions the source has: those of the unrolled innermost tiles of all
// statements. It is a proxy for compile time.
func (a *Analysis) Code() float64 {
	code := 0.0
	for k := range a.Statements {
		x := &a.Statements[k]
		code += x.written() * x.copies()
	}
	return code
}

// written returns the number of instructions of the innermost tile.
func (x *Statement) written() float64 {
	return x.Tile.Operations*x.Operations.Slots() + x.Tile.Loads() + x.Tile.Stores
}

// parted is the number of parts of loops whose borders are distinguished by index: before, inside and after, along
// rows and along columns.
const parted = 9

// copies returns how often the tile is printed.
func (x *Statement) copies() float64 {
	if x.Operations.Guards > 0 {
		return parted
	}
	return 1
}
