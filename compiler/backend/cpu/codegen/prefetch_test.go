package codegen

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// TestRereadStripsPrefetchTheNextStrip uses a strip of 64 rows of 16 columns, 4096 bytes, that every tile of rows
// reads. Each of 8 tiles prefetches an eighth of the next strip: 512 bytes, 8 per step.
func TestRereadStripsPrefetchTheNextStrip(t *testing.T) {
	const next = ", 0, 2);"
	source := tiledProduct(t, 32)
	if strings.Count(source, next) != 1 || !strings.Contains(source, " * 512 + ") || !strings.Contains(source, " * 8 + 4096"+next) {
		t.Errorf("the next strip is not fetched as it should be:\n%s", source)
	}
	if source := tiledProduct(t, 4); strings.Contains(source, next) {
		t.Errorf("a strip that is read once has another fetched:\n%s", source)
	}
}

// tiledProduct returns the source of a product by a constant of 64 x 48, packed in strips of 16 columns, in tiles of
// 4 rows.
func tiledProduct(t *testing.T, rows int) string {
	t.Helper()
	w, err := expr.Parse(strings.NewReplacer("M", strconv.Itoa(rows)).Replace("tilth-workload 1\ninput t0 f32[M,64]\nconstant t1 f32[64,48]\n" +
		"sum t2 f32[M,48] over 64 = (mul [t0 i0 r0] [t1 r0 i1])\nmap t3 f32[M,48] = (max [t2 i0 i1] 0x0p+00:f32)\noutput t3\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Replay(w, []byte(`tilth-trace 1
split 1 0 4 0
split 1 1 16 0
split 1 5 8 0
reorder 1 4 2 3 6 7
unroll 1 3
unroll 1 6
vectorize 1 7
parallel 1 4
compute-at 0 1 2
split 0 1 8 0
reorder 0 2 0 3 4
unroll 0 0
unroll 0 3
vectorize 0 4
pack 0 1 16 0 0 0 0 1 16 1
prefetch 0 1024
`))
	if err != nil {
		t.Fatal(err)
	}
	d, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	u := NewUnit(d)
	if _, err := u.Add("k", "k", s); err != nil {
		t.Fatal(err)
	}
	return u.Source()
}

// TestRereadBuffersPrefetchTheirNextInputs uses sums of 16 x 7 x 16 elements of 32 rows of 32 columns of a constant,
// 4096 bytes. Each of 8 tiles of rows prefetches 512 bytes of the following constants.
func TestRereadBuffersPrefetchTheirNextInputs(t *testing.T) {
	w, err := expr.Parse("tilth-workload 1\ninput t0 f32[64,32]\nconstant t1 f32[32,96]\n" +
		"sum t2 f32[64,96] over 32 = (mul [t0 i0 r0] [t1 r0 i1])\nmap t3 f32[64,96] = (max [t2 i0 i1] 0x0p+00:f32)\noutput t3\n")
	if err != nil {
		t.Fatal(err)
	}
	d, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	next := regexp.MustCompile(`prefetch\(\(const char \*\)&q\w+\[0\] \+ \w+ \* 512 \+ .* \+ 4096, 0, 2\);`)
	s := sketch.New(w, d, schedule.Default)
	for spf, want := range map[int]int{0: 0, 512: 1} {
		p, ok := s.Parse(fmt.Sprintf("alg=70 st=4 sv=2 sb=1024 sku=2 spf=%d", spf))
		if !ok {
			t.Fatal("the point is not legal")
		}
		applied, err := s.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		u := NewUnit(d)
		if _, err := u.Add("k", "k", applied); err != nil {
			t.Fatal(err)
		}
		if got := len(next.FindAllString(u.Source(), -1)); got != want {
			t.Errorf("with spf=%d the part behind is fetched %d times:\n%s", spf, got, u.Source())
		}
	}
}
