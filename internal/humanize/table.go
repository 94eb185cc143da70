package humanize

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"
)

// Table is a list of rows under headings, aligned when written. A heading that begins with '>' right-aligns
// its column.
type Table struct {
	columns []column
	rows    [][]string
	// whole disables eliding for the table.
	whole bool
}

// column describes the display of a table's column.
type column struct {
	right bool
	// whole disables eliding and dropping.
	whole bool
	// rare drops the column if no row has a value.
	rare bool
	// optional is the rank of the column among those to drop first; 0 for others.
	optional int
	// instants marks cells as times formatted by Instant.
	instants bool
	// colour returns the colour of a cell; nil for a plain column.
	colour func(cell string) string
}

// NewTable returns a table with the given columns.
func NewTable(headings ...string) *Table {
	t := &Table{}
	row := make([]string, len(headings))
	for i, h := range headings {
		row[i] = strings.TrimPrefix(h, ">")
		t.columns = append(t.columns, column{right: strings.HasPrefix(h, ">")})
	}
	t.rows = append(t.rows, row)
	return t
}

// NewFacts returns a table of names and values without headings, starting with the given pair. Its values may
// be sentences and are never elided.
func NewFacts(name, value string) *Table {
	t := NewTable("", "")
	t.rows, t.whole = nil, true
	t.Row(name, value)
	return t
}

// Times marks columns as times formatted by Instant.
func (t *Table) Times(headings ...string) *Table {
	return t.set(headings, func(c *column) { c.instants = true })
}

// States marks columns as states of jobs, devices or tokens.
func (t *Table) States(headings ...string) *Table {
	return t.set(headings, func(c *column) { c.colour = stateColour })
}

// Errors marks columns as error classes, which may be empty.
func (t *Table) Errors(headings ...string) *Table {
	return t.set(headings, func(c *column) { c.colour = errorColour })
}

// Whole marks columns that are never elided, such as sentences.
func (t *Table) Whole(headings ...string) *Table {
	return t.set(headings, func(c *column) { c.whole = true })
}

// Optional marks columns that are dropped rather than elided, in this order, if the screen is too narrow.
func (t *Table) Optional(headings ...string) *Table {
	for i, h := range headings {
		t.set([]string{h}, func(c *column) { c.optional = i + 1 })
	}
	return t
}

// Rare marks columns that are dropped if no row has a value there.
func (t *Table) Rare(headings ...string) *Table {
	return t.set(headings, func(c *column) { c.rare = true })
}

func (t *Table) set(headings []string, change func(*column)) *Table {
	for _, h := range headings {
		if i := slices.Index(t.rows[0], h); i >= 0 {
			change(&t.columns[i])
		}
	}
	return t
}

// Row adds a row. Omitted cells are empty. Unprintable characters become blanks, because cells may contain
// text from other programs and must stay on one line.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Printable(cell, "")
	}
	t.rows = append(t.rows, row)
}

// Write writes the table with two spaces between columns and no trailing blanks. It fits the table to a Screen.
func (t *Table) Write(w io.Writer) error {
	screen, is := w.(*Screen)
	if !is {
		screen = &Screen{}
	}
	rows := t.rows
	if is && !screen.Full {
		rows = t.relative(screen.Now)
	}
	widths := t.widths(rows)
	if screen.Width > 0 && !t.whole {
		t.fit(widths, max(screen.Width, minScreen))
	}
	var out strings.Builder
	for i, row := range rows {
		out.WriteString(t.line(row, widths, screen.Colour && i > 0) + "\n")
	}
	if is {
		w = screen.Writer
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// fit drops columns until the others can be elided to the width of a screen: the optional ones, then those on the
// right. It elides the rest, widest first. Numbers, times and columns marked as whole are never elided.
func (t *Table) fit(widths []int, screen int) {
	var order []int
	for i := range widths[1:] {
		if !t.columns[i+1].whole {
			order = append(order, i+1)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		last := len(widths)
		return cmp.Or(cmp.Compare(cmp.Or(t.columns[a].optional, last), cmp.Or(t.columns[b].optional, last)), b-a)
	})
	for _, i := range order {
		name := minCell
		if t.columns[i].optional > 0 {
			name = minName
		}
		if t.total(widths, func(i int) int { return t.least(i, widths[i], name) }) <= screen {
			break
		}
		widths[i] = dropped
	}
	for excess := t.total(widths, func(i int) int { return widths[i] }) - screen; excess > 0; excess-- {
		widest := -1
		for i, w := range widths {
			if t.least(i, w, minCell) < w && !t.columns[i].whole && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// total returns the width of a row, given that of each column shown.
func (t *Table) total(widths []int, of func(column int) int) int {
	total := -columnGap
	for i, w := range widths {
		if w != dropped {
			total += of(i) + columnGap
		}
	}
	return total
}

// least returns the width to which a column of some width can be reduced. A whole column may continue on the next
// line.
func (t *Table) least(column, width, name int) int {
	switch c := t.columns[column]; {
	case c.whole || column > 0 && !c.right && !c.instants && c.optional == 0:
		return min(width, minCell)
	case c.right || c.instants || c.optional > 0:
		return width
	}
	return min(width, name)
}

// relative returns the rows with relative times.
func (t *Table) relative(now time.Time) [][]string {
	var rows [][]string
	for _, row := range t.rows {
		row = slices.Clone(row)
		for i, cell := range row {
			if at, err := time.Parse(time.RFC3339, cell); err == nil && t.columns[i].instants {
				row[i] = Ago(at, now)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// widths returns the display widths of the columns.
func (t *Table) widths(rows [][]string) []int {
	widths := make([]int, len(t.columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Columns(cell))
		}
	}
	for i, c := range t.columns {
		hasValue := func(row []string) bool { return i < len(row) && row[i] != "" && row[i] != Missing }
		if c.rare && !slices.ContainsFunc(rows[1:], hasValue) {
			widths[i] = dropped
		}
	}
	return widths
}

// line formats a row in columns of the given widths.
func (t *Table) line(row []string, widths []int, coloured bool) string {
	var line strings.Builder
	pending := 0 // pending blanks, dropped at the end of the line
	for i, cell := range row {
		if widths[i] == dropped {
			continue
		}
		shown := ElideMiddle(cell, widths[i])
		gap := widths[i] - Columns(shown)
		if t.columns[i].right {
			pending, gap = pending+gap, 0
		}
		if trimmed := strings.TrimRight(shown, " "); trimmed == "" {
			pending += len(shown)
		} else {
			line.WriteString(strings.Repeat(" ", pending))
			pending = len(shown) - len(trimmed)
			line.WriteString(t.coloured(i, cell, trimmed, coloured))
		}
		pending += gap + columnGap
	}
	return line.String()
}

// coloured returns the displayed text of a cell, in the cell's colour if it has one.
func (t *Table) coloured(column int, cell, shown string, coloured bool) string {
	of := t.columns[column].colour
	if !coloured || of == nil || of(cell) == "" {
		return shown
	}
	return of(cell) + shown + plain
}
