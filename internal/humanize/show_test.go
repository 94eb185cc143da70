package humanize

import (
	"strings"
	"testing"
	"time"
)

func TestUnits(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"no time", Seconds(0), "-"},
		{"nanoseconds", Seconds(104.6e-9), "105 ns"},
		{"microseconds", Seconds(21.94e-6), "21.9 µs"},
		{"milliseconds", Seconds(0.00123456), "1.23 ms"},
		{"seconds", Seconds(15.84), "15.8 s"},
		{"many seconds", Seconds(1234), "1234 s"},
		{"rate", GFLOPS(2e9, 0.01), "200"},
		{"no rate without time", GFLOPS(2e9, 0), "-"},
		{"no rate without work", GFLOPS(0, 1), "-"},
		{"small work", GFLOP(402000), "0.000402"},
		{"work", GFLOP(0.238e9), "0.238"},
		{"speed-up", Ratio(3, 2), "1.50x"},
		{"unknown speed-up", Ratio(0, 2), "-"},
		{"percent", Percent(1, 8), "12 %"},
		{"more than all", Percent(3, 2), "150 %"},
		{"no percent", Percent(1, 0), "-"},
		{"bytes", Bytes(999), "999 B"},
		{"kibibytes", Bytes(941_056), "919 KiB"},
		{"mebibytes", Bytes(46_765_000), "44.6 MiB"},
		{"minutes", Clock(125 * time.Second), "2:05"},
		{"hours", Clock(3725 * time.Second), "1:02:05"},
		{"no instant", Instant(time.Time{}), "-"},
		{"instant", Instant(time.Unix(3600, 0)), "1970-01-01T01:00:00Z"},
		{"just now", Ago(time.Unix(100, 0), time.Unix(100, 5)), "now"},
		{"seconds ago", Ago(time.Unix(100, 0), time.Unix(159, 0)), "59 s ago"},
		{"minutes ago", Ago(time.Unix(100, 0), time.Unix(300, 0)), "3 min ago"},
		{"hours ago", Ago(time.Unix(0, 0), time.Unix(47*3600, 0)), "47 h ago"},
		{"days to come", Ago(time.Unix(72*3600, 0), time.Unix(0, 0)), "in 3 days"},
		{"digest", Digest("0123456789abcdef"), "0123456789ab"},
		{"counts", Counts(map[string]int{"timeout": 1, "crash": 2}), "crash 2, timeout 1"},
		{"no counts", Counts(nil), "-"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestTableAlignsByRunesAndLeavesNoTrailingSpace(t *testing.T) {
	table := NewTable("NAME", ">TIME", "NOTE")
	table.Row("short", "1 µs", "x")
	table.Row("much longer", "100 ms")
	var out strings.Builder
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := "NAME           TIME  NOTE\n" +
		"short          1 µs  x\n" +
		"much longer  100 ms\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestColumnsWithoutValuesAreDropped(t *testing.T) {
	for energy, want := range map[string]string{Missing: "TASK\nconv\n", "": "TASK\nconv\n", "3 J": "TASK  ENERGY\nconv     3 J\n"} {
		table := NewTable("TASK", ">ENERGY").Rare("ENERGY")
		table.Row("conv", energy)
		var b strings.Builder
		if err := table.Write(&b); err != nil || b.String() != want {
			t.Errorf("%q: %q, %v, want %q", energy, b.String(), err, want)
		}
	}
}

func TestCellIsOneLine(t *testing.T) {
	table := NewTable("NAME", "REASON")
	table.Row("a", "b\x1b[2J\nforged  row\u202e")
	var out strings.Builder
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	if want := "NAME  REASON\na     b [2J forged  row\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
