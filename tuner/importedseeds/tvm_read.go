package importedseeds

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// LogFormat is a log format.
type LogFormat string

// Log formats.
const (
	AutoTVM LogFormat = "autotvm"
	Ansor   LogFormat = "ansor"
)

// LogFormats lists all formats.
var LogFormats = []LogFormat{AutoTVM, Ansor}

// Limits of the input.
const (
	maxLineBytes = 1 << 20
	maxLogBytes  = 2 << 30
	maxOperators = 4096
)

// Log is the content of a log.
type Log struct {
	// Lines counts the lines of measurements, and Taken those used as seeds.
	Lines, Taken int
	Refused      []Refused
	// Entries holds the fastest seeds of each operator, in the order of first occurrence.
	Entries []Entry
}

// Err returns why a log has no seeds, or nil if it has some.
func (l *Log) Err() error {
	switch {
	case len(l.Entries) > 0:
		return nil
	case len(l.Refused) == 0:
		return errors.New("the log has no lines")
	}
	r := l.Refused[0]
	return fmt.Errorf("none of the log's %d lines is a seed: %d were refused because of: %s (first line %d: %s)",
		l.Lines, r.Count, r.Reason, r.Line, r.Detail)
}

// ReadLog reads a log, optionally compressed with gzip. Unusable lines are counted and skipped. It returns an
// error if the log cannot be read to its end or exceeds 2 GiB.
func ReadLog(r io.Reader, format LogFormat) (*Log, error) {
	parse := map[LogFormat]func([]byte) (*measured, error){AutoTVM: parseAutoTVM, Ansor: parseAnsor}[format]
	if parse == nil {
		return nil, fmt.Errorf("format %q: want one of %v", format, LogFormats)
	}
	in, err := plain(r)
	if err != nil {
		return nil, err
	}
	b := &builder{format: format, refused: refusals{}, at: map[string]*operator{}}
	lines := bufio.NewReaderSize(in, 64<<10)
	read := int64(0)
	for number := 1; ; number++ {
		line, size, err := readLine(lines)
		if read += size; read > maxLogBytes {
			return nil, fmt.Errorf("the log has more than %d GiB: split it", maxLogBytes>>30)
		}
		if size > 0 {
			b.line(number, line, size, parse)
		}
		if errors.Is(err, io.EOF) {
			return b.log()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
}

// plain returns a log without its compression.
func plain(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) { // too short to be compressed on error
		return in, nil
	}
	return gzip.NewReader(in)
}

// readLine returns the next line, truncated to maxLineBytes plus one, and its full size.
func readLine(in *bufio.Reader) (line []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		line = append(line, part[:min(len(part), maxLineBytes+1-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

// measured is a parsed line with a schedule.
type measured struct {
	// key identifies the operator. make creates the operators, one for each interpretation of the line.
	key    string
	make   func() ([]*Operator, error)
	tiling searchspace.Tiling
	// seconds is the latency, which only orders the tilings.
	seconds float64
}

// builder collects the seeds of a log.
type builder struct {
	format  LogFormat
	lines   int
	taken   int
	refused refusals
	at      map[string]*operator
	order   []*operator
}

// operator holds the lines of one operator.
type operator struct {
	entry Entry
	best  []*measured
	err   error
}

func (b *builder) line(number int, line []byte, size int64, parse func([]byte) (*measured, error)) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' { // TVM skips these, too
		return
	}
	b.lines++
	err := b.seed(line, size, parse)
	var why *refusal
	switch {
	case err == nil:
		b.taken++
	case errors.As(err, &why):
		b.refused.add(number, why)
	default:
		b.refused.add(number, &refusal{OutOfBounds, printable(err.Error())})
	}
}

func (b *builder) seed(line []byte, size int64, parse func([]byte) (*measured, error)) error {
	if size > maxLineBytes {
		return refuse(TooLong, "%d bytes, of at most %d", size, maxLineBytes)
	}
	m, err := parse(line)
	if err != nil {
		return err
	}
	if err := m.tiling.Valid(); err != nil {
		return refuse(Malformed, "%v", err)
	}
	o := b.at[m.key]
	if o == nil {
		if len(b.at) == maxOperators {
			return refuse(TooManyOthers, "of at most %d", maxOperators)
		}
		o = b.operator(m)
	}
	if o.err != nil {
		return o.err
	}
	o.add(m)
	return nil
}

func (b *builder) operator(m *measured) *operator {
	o := &operator{entry: Entry{From: string(b.format)}}
	b.at[m.key] = o
	meanings, err := m.make()
	if err != nil {
		o.err = err
		return o
	}
	for _, meaning := range meanings {
		var anchors []string
		if anchors, err = meaning.Anchors(); err != nil {
			break
		}
		o.entry.Operator = meaning.String()
		for _, a := range anchors {
			if !slices.Contains(o.entry.Anchors, a) {
				o.entry.Anchors = append(o.entry.Anchors, a)
			}
		}
	}
	if o.err = err; err == nil {
		b.order = append(b.order, o)
	}
	return o
}

// add keeps the fastest tilings without duplicates.
func (o *operator) add(m *measured) {
	if at := slices.IndexFunc(o.best, func(b *measured) bool { return b.tiling == m.tiling }); at >= 0 {
		if o.best[at].seconds <= m.seconds {
			return
		}
		o.best = slices.Delete(o.best, at, at+1)
	}
	o.best = append(o.best, m)
	slices.SortStableFunc(o.best, func(a, b *measured) int { return cmp.Compare(a.seconds, b.seconds) })
	o.best = o.best[:min(PerOperator, len(o.best))]
}

func (b *builder) log() (*Log, error) {
	l := &Log{Lines: b.lines, Taken: b.taken, Refused: b.refused.list()}
	for _, o := range b.order {
		for _, t := range o.best {
			o.entry.Tilings = append(o.entry.Tilings, t.tiling)
		}
		l.Entries = append(l.Entries, o.entry)
	}
	return l, nil
}

// gpus lists the target kinds and keys of GPUs.
var gpus = []string{"cuda", "nvptx", "rocm", "opencl", "vulkan", "metal", "webgpu"}

// checkTarget rejects targets other than processors via LLVM or C.
func checkTarget(text string) error {
	kind, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if strings.HasPrefix(kind, "{") { // a JSON description with any order of keys
		kind = kindOf(text)
	}
	switch {
	case kind == "llvm" || kind == "c":
		return nil
	case slices.Contains(gpus, kind):
		return refuse(GPUTarget, "%s", kind)
	}
	return refuse(OtherTarget, "%s", kind)
}

// list is a JSON array whose elements are decoded one by one.
type list []json.RawMessage

// read decodes element k, and returns false on failure.
func (l list) read(k int, into any) bool { return k < len(l) && json.Unmarshal(l[k], into) == nil }

// kindOf returns the kind of a target described in JSON.
func kindOf(text string) string {
	var t struct{ Kind string }
	if json.Unmarshal([]byte(text), &t) != nil {
		return "?"
	}
	return t.Kind
}

// seconds returns the mean latency of a result: latencies, an error code (0 for none), and two more numbers.
func seconds(result list) (float64, error) {
	var costs []float64
	var code int
	if !result.read(0, &costs) || !result.read(1, &code) || len(costs) == 0 {
		return 0, refuse(Malformed, "the result has no latencies or no error code")
	}
	if code != 0 {
		return 0, refuse(Failed, "code %d", code)
	}
	sum := 0.0
	for _, c := range costs {
		sum += c
	}
	mean := sum / float64(len(costs))
	if !(mean > 0) || mean >= unmeasured || math.IsInf(mean, 0) {
		return 0, refuse(Failed, "a latency of %g s", mean)
	}
	return mean, nil
}

// unmeasured is the latency that TVM writes for a failed measurement.
const unmeasured = 1e8
