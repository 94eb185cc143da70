package show

import (
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Table is rows under headings, aligned when written. A heading that begins with '>' sets its column flush right.
type Table struct {
	columns []column
	rows    [][]string
	// whole says that no cell is elided.
	whole bool
}

// column says how a table's column is shown.
type column struct {
	right bool
	// whole says that the cells are never elided.
	whole bool
	// instants says that the cells are times, as Instant shows them.
	instants bool
	// colour is the colour of a cell on a screen; nil for a column without any.
	colour func(cell string) string
}

// NewTable makes a table with these columns.
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

// NewFacts makes a table of names and values without headings, which begins with this one. Values may be sentences:
// they are never elided.
func NewFacts(name, value string) *Table {
	t := NewTable("", "")
	t.rows, t.whole = nil, true
	t.Row(name, value)
	return t
}

// Times says that columns hold times, as Instant shows them.
func (t *Table) Times(headings ...string) *Table {
	return t.set(headings, func(c *column) { c.instants = true })
}

// States says that columns hold the states of jobs, devices or tokens.
func (t *Table) States(headings ...string) *Table {
	return t.set(headings, func(c *column) { c.colour = stateColour })
}

// Errors says that columns hold classes of errors, or nothing.
func (t *Table) Errors(headings ...string) *Table {
	return t.set(headings, func(c *column) { c.colour = errorColour })
}

// Whole says that columns hold what is never elided, such as sentences.
func (t *Table) Whole(headings ...string) *Table {
	return t.set(headings, func(c *column) { c.whole = true })
}

func (t *Table) set(headings []string, change func(*column)) *Table {
	for _, h := range headings {
		if i := slices.Index(t.rows[0], h); i >= 0 {
			change(&t.columns[i])
		}
	}
	return t
}

// Row adds a row; cells that are left out are empty. What is not printable is shown as a blank: a cell is one line,
// and others may have worded it.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = strings.Map(printable, cell)
	}
	t.rows = append(t.rows, row)
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// Write writes the table, two spaces between columns and none at the ends of lines. To a Screen it writes what fits.
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
		screen.fit(widths, t.elidable)
	}
	var out strings.Builder
	for i, row := range rows {
		out.WriteString(t.line(row, widths, screen.Colour && i > 0) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// elidable says whether a column's cells may be elided.
func (t *Table) elidable(column int) bool {
	c := t.columns[column]
	return !c.right && !c.instants && !c.whole
}

// relative is the rows with times told by how long ago they were.
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

// widths are the widths of columns, as a terminal shows them, that have all of every cell.
func (t *Table) widths(rows [][]string) []int {
	widths := make([]int, len(t.columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Columns(cell))
		}
	}
	return widths
}

// line is a row in columns of these widths.
func (t *Table) line(row []string, widths []int, coloured bool) string {
	var line strings.Builder
	pending := 0 // blanks before the next cell, which a line does not end with
	for i, cell := range row {
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

// coloured is what is shown of a cell, in the cell's colour if it has one.
func (t *Table) coloured(column int, cell, shown string, coloured bool) string {
	of := t.columns[column].colour
	if !coloured || of == nil || of(cell) == "" {
		return shown
	}
	return of(cell) + shown + plain
}
