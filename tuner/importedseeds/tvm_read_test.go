package importedseeds

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func logOf(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// told formats a log: its operators with their tilings, fastest first, and the reasons why lines were skipped.
func told(t *testing.T, l *Log) string {
	t.Helper()
	var b strings.Builder
	for _, e := range l.Entries {
		fmt.Fprintln(&b, e.Operator)
		for _, tiling := range e.Tilings {
			text, err := json.Marshal(tiling)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, " ", strings.ReplaceAll(string(text), `"`, ""))
		}
	}
	for _, r := range l.Refused {
		fmt.Fprintf(&b, "%d %s, first line %d: %s\n", r.Count, r.Reason, r.Line, r.Detail)
	}
	fmt.Fprintf(&b, "%d of %d\n", l.Taken, l.Lines)
	return b.String()
}

func TestLogIsReadLineByLine(t *testing.T) {
	for _, c := range []struct {
		file   string
		format LogFormat
		want   string
	}{
		{"autotvm.log", AutoTVM, `
conv2d 1x56x56x64 k3x3 -> 64
  {channels:16,columns:7,rows:1,channel_tiles:1,column_tiles:8,row_tiles:1,reduce:16,unroll:1,outside:channels}
  {channels:32,columns:14,rows:1,channel_tiles:1,row_tiles:1,reduce:16,unroll:3,outside:channels}
  {channels:32,columns:8,rows:1,channel_tiles:1,column_tiles:7,row_tiles:1,reduce:64,unroll:1,outside:channels}
  {channels:8,columns:4,rows:2,channel_tiles:1,unroll:3,outside:channels}
conv2d 1x56x56x64 k1x1 s2x2 -> 128
  {channels:32,columns:7,rows:2,channel_tiles:1,row_tiles:1,outside:channels}
conv2d 1x112x112x96 k3x3 s2x2 depthwise -> 96
  {channels:16,columns:8,rows:1,channel_tiles:1,row_tiles:1,unroll:3,outside:channels}
dense 1x784 -> 256
  {channels:16,columns:1,channel_tiles:2,column_tiles:1,row_tiles:1,unroll:8,outside:channels}
matmul 8x128x64 x 8x64x128
  {channels:16,columns:8,channel_tiles:1,column_tiles:1,row_tiles:1,outside:positions}
2 unknown operator or template, first line 12: topi_nn_conv2d winograd
1 failed measurement, first line 4: code 4
1 other structure of loops, first line 8: dense_nopack.x86, which has terms of one sum in a vector: tiles here have results there
1 GPU target, first line 13: cuda
1 other element type than float32, first line 15: float16
1 malformed line, first line 16: unexpected end of JSON input
8 of 15
`},
		{"ansor.json", Ansor, `
conv2d 1x56x56x64 k3x3 -> 64
  {channels:32,columns:7,rows:2,channel_tiles:2,column_tiles:8,row_tiles:1,reduce:4}
  {channels:16,columns:4,rows:2,channel_tiles:1,column_tiles:7,row_tiles:1,reduce:32,unroll:8}
  {channels:8,columns:8,rows:4,channel_tiles:1,column_tiles:1,row_tiles:7,reduce:1}
dense 128x512 -> 1536
  {channels:16,columns:8,rows:1,channel_tiles:2,column_tiles:4,row_tiles:1,unroll:16}
matmul 8x128x64 x 8x64x96
  {channels:16,columns:4,rows:1,channel_tiles:2,column_tiles:4,row_tiles:1}
2 ambiguous shapes, first line 6: operands of [8 64 64] and [8 64 64]
1 operator of a program, which the log does not define, first line 8: matmul_add
1 other structure of loops, first line 9: its sum has no tiles of four levels
1 failed measurement, first line 11: code 6
1 GPU target, first line 12: cuda
1 line of another format, first line 13: AutoTVM's: use --format autotvm
1 malformed line, first line 14: unexpected end of JSON input
5 of 13
`},
		{"autotvm-arm.log", AutoTVM, `
conv2d 1x112x112x32 k3x3 depthwise -> 32
  {channels:4,columns:8,rows:2,channel_tiles:1,outside:channels}
  {channels:8,columns:7,rows:1,channel_tiles:1,outside:channels}
  {channels:4,columns:4,rows:2,channel_tiles:1,outside:channels}
conv2d 1x32x32x512 k3x3 depthwise -> 512
  {channels:16,columns:8,rows:1,channel_tiles:1,unroll:9,outside:channels}
1 unknown operator or template, first line 6: a depthwise convolution without the knobs tile_c, tile_h and tile_w
1 shapes out of bounds, first line 7: input [1 32 112 112], weights [32 2 3 3] and 32 groups do not fit
4 of 6
`},
		{"ansor-nchw.json", Ansor, `
conv2d 1x28x28x32 k1x1 -> 64
  {channels:8,columns:14,rows:1,channel_tiles:2,column_tiles:2,row_tiles:7,reduce:4,unroll:4}
conv2d 1x112x112x96 k3x3 s2x2 depthwise -> 96
  {channels:2,columns:28,rows:2,channel_tiles:4,column_tiles:1,row_tiles:2}
1 unknown operator or template, first line 3: loops of [1 192 8 8] and [3 3], of arguments [1 96 8 8 96 2 3 3 1 192 8 8]
2 of 3
`},
	} {
		text := logOf(t, c.file)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		for name, in := range map[string][]byte{"plain": text, "compressed": packed.Bytes(), "with Windows' ends of lines": bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))} {
			l, err := ReadLog(bytes.NewReader(in), c.format)
			if err != nil {
				t.Fatal(err)
			}
			if got := told(t, l); got != c.want[1:] {
				t.Errorf("%s, %s: got\n%swant%s", c.file, name, got, c.want)
			}
		}
		if _, err := ReadLog(bytes.NewReader(packed.Bytes()[:packed.Len()/2]), c.format); err == nil {
			t.Errorf("%s: half of a compressed log is read without an error", c.file)
		}
	}
}

// TestLineThatIsTooLongIsPassedOver checks that a line of any length uses bounded memory and is the only one
// skipped.
func TestLineThatIsTooLongIsPassedOver(t *testing.T) {
	lines := strings.Split(string(logOf(t, "autotvm.log")), "\n")
	l, err := ReadLog(strings.NewReader(strings.Repeat("x", 3*maxLineBytes)+"\n"+lines[1]+"\n"+strings.Repeat("[", maxLineBytes-1)), AutoTVM)
	if err != nil {
		t.Fatal(err)
	}
	if l.Taken != 1 || len(l.Refused) != 2 || l.Refused[0].Reason != TooLong || l.Refused[1].Reason != Malformed {
		t.Errorf("%d are taken, and %v refused", l.Taken, l.Refused)
	}
}

func TestOnlyTheFastestOfAnOperatorAreKept(t *testing.T) {
	line := strings.Split(string(logOf(t, "autotvm.log")), "\n")[1]
	var log strings.Builder
	for k := range 40 {
		log.WriteString(strings.NewReplacer("[-1, 14]", fmt.Sprintf("[-1, %d]", 1+k%20), "[0.0021]", fmt.Sprintf("[%g]", 1/float64(k+1))).Replace(line) + "\n")
	}
	l, err := ReadLog(strings.NewReader(log.String()), AutoTVM)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Entries) != 1 || len(l.Entries[0].Tilings) != PerOperator || l.Taken != 40 {
		t.Fatalf("%d lines make %+v", l.Taken, l.Entries)
	}
	for rank, tiling := range l.Entries[0].Tilings {
		if tiling.Columns != int64(20-rank) {
			t.Errorf("place %d has %d columns", rank, tiling.Columns)
		}
	}
}

func TestDamagedLinesAreRefused(t *testing.T) {
	of := func(file string, line int) string { return strings.Split(string(logOf(t, file)), "\n")[line] }
	conv, sum := of("autotvm.log", 1), of("ansor.json", 1)
	for _, c := range []struct {
		format    LogFormat
		line, old string
		replaced  string
		want      RefusalReason
	}{
		{AutoTVM, conv, `[1, 64, 56, 56]`, `[1, 64, 56]`, OtherLayout},
		{AutoTVM, conv, `[1, 64, 56, 56]`, `[1, 64, -56, 56]`, OutOfBounds},
		{AutoTVM, conv, `[1, 64, 56, 56]`, `[1, 64, 1048576, 1048576]`, OutOfBounds},
		{AutoTVM, conv, `[1, 64, 56, 56]`, `[1, 64, 1e99, 56]`, Malformed},
		{AutoTVM, conv, `[1, 64, 56, 56]`, `[1, 32, 56, 56]`, OutOfBounds},
		{AutoTVM, conv, `[1, 64, 56, 56]`, `["n", 64, 56, 56]`, Malformed},
		{AutoTVM, conv, `[1, 1], [1, 1, 1, 1]`, `[0, 0], [1, 1, 1, 1]`, OutOfBounds},
		{AutoTVM, conv, `[1, 1, 1, 1]`, `[1, 1, 1]`, Malformed},
		{AutoTVM, conv, `"NCHW", "NCHW"`, `"HWCN", "NCHW"`, OtherLayout},
		{AutoTVM, conv, `[-1, 32]`, `[-1, 0]`, Malformed},
		{AutoTVM, conv, `[-1, 32]`, `[]`, Malformed},
		{AutoTVM, conv, `[-1, 32]`, `[-1, 99999999]`, Malformed},
		{AutoTVM, conv, `"tile_oc"`, `"tile_xx"`, Unknown},
		{AutoTVM, conv, `[0.0021]`, `[]`, Malformed},
		{AutoTVM, conv, `[0.0021]`, `[-1]`, Failed},
		{AutoTVM, conv, `llvm -keys`, `hexagon -keys`, OtherTarget},
		{AutoTVM, conv, conv, `[]`, Malformed},
		{AutoTVM, conv, conv, sum, OtherFormat},
		{Ansor, sum, `["SP", 3, 20, 64, [32], 1]`, `["SP", 3, 20, 64, [33], 1]`, Malformed},
		{Ansor, sum, `["SP", 3, 20, 64, [32], 1]`, `["SP", 3, 20, 64, [0], 1]`, Malformed},
		{Ansor, sum, `["SP", 3, 20, 64, [32], 1]`, `["SP", 3, 20]`, Malformed},
		{Ansor, sum, `["SP", 3, 20, 64, [32], 1]`, `["SP", 3, 20, 32, [32], 1]`, Unknown},
		{Ansor, sum, `["SP", 3, 20, 64, [32], 1]`, `7`, Malformed},
		{Ansor, sum, `max_step$64`, `max_step$many`, Malformed},
		{Ansor, sum, `[1, 1, 1, 64], [1, 56`, `{}, [1, 56`, Malformed},
		{Ansor, sum, `\", [1, 56`, `\", [0, 56`, OutOfBounds},
		{Ansor, sum, sum, conv, OtherFormat},
	} {
		damaged := strings.Replace(c.line, c.old, c.replaced, 1)
		if damaged == c.line {
			t.Errorf("%s is not in the line", c.old)
		}
		l, err := ReadLog(strings.NewReader(damaged), c.format)
		if err != nil {
			t.Fatal(err)
		}
		if l.Taken != 0 || len(l.Refused) != 1 || l.Refused[0].Reason != c.want {
			t.Errorf("%s in place of %s: %d taken, refused %+v, want %s", c.replaced, c.old, l.Taken, l.Refused, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, file := range []string{"autotvm.log", "ansor.json", "autotvm-arm.log", "ansor-nchw.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range bytes.Split(text, []byte("\n")) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, format := range LogFormats {
			l, err := ReadLog(bytes.NewReader(text), format)
			if err != nil {
				continue
			}
			refused := 0
			for _, r := range l.Refused {
				refused += r.Count
			}
			if l.Taken+refused != l.Lines {
				t.Errorf("%s: of %d lines %d are taken and %d refused", format, l.Lines, l.Taken, refused)
			}
			for _, e := range l.Entries {
				for _, tiling := range e.Tilings {
					if err := tiling.Valid(); err != nil {
						t.Errorf("%s: %v", format, err)
					}
				}
			}
		}
	})
}
