package humanize

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// jobs returns a table that is wider than small screens.
func jobs() *Table {
	table := NewTable("JOB", "STATE", ">TRIALS", "CREATED", "TARGET").Times("CREATED").States("STATE")
	table.Row("job-00000001-abcdef", "failed", "7", "2026-01-01T00:00:00Z", "x86-64/znver4/avx512/threads=8/clang-19.1.7")
	table.Row("job-00000002-fedcba", "done", "12", "", "x86-64/znver4/avx512/threads=16/clang-19.1.7")
	return table
}

func written(t *testing.T, table *Table, screen Screen) []string {
	t.Helper()
	var out strings.Builder
	screen.Writer, screen.Now = &out, time.Date(2026, 1, 1, 0, 3, 0, 0, time.UTC)
	if err := table.Write(&screen); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestTableFitsItsScreenAndCellsKeepBothEnds(t *testing.T) {
	for _, width := range []int{60, 70, 80} {
		lines := written(t, jobs(), Screen{Width: width})
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("%q has %d columns, more than %d", line, n, width)
			}
		}
		if row := lines[1]; !strings.HasPrefix(row, "job-") || !strings.Contains(row, "…") || !strings.HasSuffix(row, ".1.7") {
			t.Errorf("at %d columns the row is %q: an end was lost", width, row)
		}
	}
}

func TestRowIsNotElidedBelowTheLeastWidth(t *testing.T) {
	if narrow, smallest := written(t, jobs(), Screen{Width: 20}), written(t, jobs(), Screen{Width: minScreen}); narrow[1] != smallest[1] {
		t.Errorf("on 20 columns the row is %q, on %d it is %q", narrow[1], minScreen, smallest[1])
	}
}

func TestNumbersAndTimesAreNeverElided(t *testing.T) {
	table := NewTable(">NUMBER", "AT").Times("AT")
	number := strings.Repeat("1", 100)
	table.Row(number, "2026-01-01T00:00:00Z")
	for width, want := range map[int]string{111: number + "  3 min ago", 60: number} {
		if row := written(t, table, Screen{Width: width})[1]; row != want {
			t.Errorf("on %d columns the row is %q", width, row)
		}
	}
}

func TestColumnsAreDroppedBeforeUnitsAreCut(t *testing.T) {
	table := NewTable("TASK", ">TIMES", ">BEST", "INTERVAL", "WORKLOAD").Optional("INTERVAL", "TIMES")
	table.Row("conv2d+add+relu 1x56x56x64 k3x3 -> 64", "2x", "21.9 µs", "15.1–28.6 µs (50 %)", strings.Repeat("0123456789abcdef", 4))
	for width, want := range map[int]string{
		0:  "conv2d+add+relu 1x56x56x64 k3x3 -> 64     2x  21.9 µs  15.1–28.6 µs (50 %)  " + strings.Repeat("0123456789abcdef", 4),
		80: "conv2d+a…4 k3x3 -> 64     2x  21.9 µs  15.1–28.6 µs (50 %)  0123456…456789abcdef",
		60: "conv2d+a…4 k3x3 -> 64     2x  21.9 µs  01234567…456789abcdef",
		45: "conv2d…k3x3 -> 64  21.9 µs  012345…6789abcdef",
		25: "conv2d…3x3 -> 64  21.9 µs",
		20: "conv… -> 64  21.9 µs",
	} {
		if row := written(t, table, Screen{Width: width})[1]; row != want {
			t.Errorf("on %d columns the row is %q, want %q", width, row, want)
		}
	}
}

func TestFactsAreNeverElided(t *testing.T) {
	sentence := strings.Repeat("word ", 30) + "end"
	if row := written(t, NewFacts("reason:", sentence), Screen{Width: 60})[0]; row != "reason:  "+sentence {
		t.Errorf("the row is %q", row)
	}
}

func TestTimesAreRelativeOnAScreenOnly(t *testing.T) {
	if row := written(t, jobs(), Screen{})[1]; !strings.Contains(row, "3 min ago") {
		t.Errorf("on a screen the row is %q", row)
	}
	var out strings.Builder
	if err := jobs().Write(&out); err != nil || !strings.Contains(out.String(), "2026-01-01T00:00:00Z") || strings.Contains(out.String(), "…") {
		t.Errorf("off a screen the table is\n%s%v", out.String(), err)
	}
}

func TestFullScreenHasTimesInFull(t *testing.T) {
	if row := written(t, jobs(), Screen{Full: true})[1]; !strings.Contains(row, "2026-01-01T00:00:00Z") {
		t.Errorf("the row is %q", row)
	}
}

func TestWholeColumnsAreNeverElided(t *testing.T) {
	sentence := strings.Repeat("word ", 30) + "end"
	table := NewTable("CHECK", "FOUND").Whole("FOUND")
	table.Row("a check of a long name", sentence)
	if row := written(t, table, Screen{Width: 60})[1]; !strings.HasSuffix(row, sentence) {
		t.Errorf("the row is %q", row)
	}
}

func TestStatesAndErrorsHaveColours(t *testing.T) {
	lines := written(t, jobs(), Screen{Colour: true})
	if !strings.Contains(lines[1], red+"failed"+plain) || strings.Contains(lines[0]+lines[2], "\x1b") {
		t.Errorf("the rows are %q", lines)
	}
	table := NewTable("WHAT", "ERROR").Errors("ERROR")
	table.Row("a", "crash")
	table.Row("b", Missing)
	table.Row("c", "")
	if got := strings.Join(written(t, table, Screen{Colour: true})[1:], "|"); got != "a     "+red+"crash"+plain+"|b     -|c" {
		t.Errorf("the rows are %q", got)
	}
}

func TestTextsAreAsWideAsATerminalShowsThem(t *testing.T) {
	for text, want := range map[string]int{"": 0, "µs…": 3, "模型": 4, "e\u0301": 1, "ｆ": 2, "🙂": 2} {
		if got := Columns(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{"模型模型模型": "模…型", "abcdefghij": "ab…hij"} {
		if got := ElideMiddle(text, 6); got != want || Columns(got) > 6 {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}

func TestNamesAreElidedInTheMiddle(t *testing.T) {
	name := "conv2d+add+relu 1x56x56x64 k3x3 -> 64"
	for width, want := range map[int]string{0: "", 1: "…", 8: "co…-> 64", 26: "conv2d+add…6x64 k3x3 -> 64", 99: name} {
		if got := ElideMiddle(name, width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}
