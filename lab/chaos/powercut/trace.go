package powercut

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Traced calls, and calls that are only traced to reject programs that make them, because they cannot be replayed. A
// question mark marks calls that some architectures lack.
var (
	followed = "openat,write,pwrite64,lseek,ftruncate,fsync,fdatasync,renameat,renameat2,linkat,unlinkat,mkdirat"
	foreign  = "?open,?creat,?rename,?link,?unlink,?rmdir,?mkdir,?symlink,symlinkat,truncate,fallocate,writev,pwritev,pwritev2," +
		"copy_file_range,sendfile,splice,sync_file_range,mmap"
)

// maxBytes limits the size of a single write.
const maxBytes = 1 << 28

// Trace is the sequence of calls that changed files below a folder.
type Trace struct {
	root   string
	before []entry
	steps  []step
}

// entry is a file or folder that existed before.
type entry struct {
	path    string
	file    bool // or a folder
	content []byte
}

// step is a successful call.
type step struct {
	began int // number of steps that had ended when it began
	call  call
}

// call is a parsed line of strace. For openat(3, "a", O_RDWR) = 4 it holds "openat", its arguments, and 4. The data
// of a write are in data instead of its arguments.
type call struct {
	name   string
	args   []string
	data   []byte
	result int64
}

// Run runs a command, which must not be started, to its end under strace. It returns the changes by the command and
// all its child processes below a folder, an absolute path without links. The folder's initial content counts as
// synced. A failed command is an error, a killed one is not.
func Run(cmd *exec.Cmd, root string) (*Trace, error) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		return nil, errors.New("recording what a program writes needs strace: scripts/packages.sh test installs it")
	}
	t := &Trace{root: filepath.Clean(root)}
	if err := t.readBefore(); err != nil {
		return nil, err
	}
	out, err := os.CreateTemp("", "trace")
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Args = append([]string{
		strace, "-f", "--seccomp-bpf", "-qq", "-e", "signal=none", "-y", "-xx", "-s", strconv.Itoa(maxBytes), "-o", out.Name(),
		"-e", "trace=" + followed + "," + foreign, "--", cmd.Path,
	}, cmd.Args[1:]...)
	cmd.Path = strace
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != -1 {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args[len(cmd.Args)-1:], " "), err)
	}
	if err := t.read(out); err != nil {
		return nil, fmt.Errorf("trace of %s: %w", root, err)
	}
	return t, nil
}

func (t *Trace) readBefore() error {
	return filepath.WalkDir(t.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == t.root {
			return err
		}
		e := entry{path: strings.TrimPrefix(path, t.root+"/")}
		if d.Type().IsRegular() {
			if e.content, err = os.ReadFile(path); err != nil {
				return err
			}
			e.file = true
		}
		t.before = append(t.before, e)
		return nil
	})
}

// Len returns the number of steps. The instants of a trace are 0, before all of them, to Len, after the last.
func (t *Trace) Len() int { return len(t.steps) }

// read parses the output of strace. It may split a call into two lines with calls of other threads in between:
//
//	17 fsync(3<\x2f\x61> <unfinished ...>
//	17 <... fsync resumed>) = 0
func (t *Trace) read(in io.Reader) error {
	type half struct {
		text  string
		began int
	}
	halves := map[string]half{}
	root := escape(t.root)
	// A quoted path, or one that annotates a descriptor.
	concerns := func(text string) bool { return strings.Contains(text, `"`+root) || strings.Contains(text, "<"+root) }
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			break
		}
		if err != nil {
			return err
		}
		thread, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		text = strings.TrimSpace(text)
		began := len(t.steps)
		if first, is := strings.CutSuffix(text, " <unfinished ...>"); is {
			if concerns(first) {
				halves[thread] = half{first, began}
			}
			continue
		}
		if rest, is := strings.CutPrefix(text, "<... "); is {
			h := halves[thread]
			delete(halves, thread)
			_, rest, _ = strings.Cut(rest, " resumed>")
			text, began = h.text+rest, h.began
		}
		if !concerns(text) {
			continue
		}
		if err := t.add(text, began); err != nil {
			return err
		}
	}
	for _, h := range halves {
		if err := t.add(h.text+") = ?", h.began); err != nil {
			return err
		}
	}
	return nil
}

// add adds a call if it took effect.
func (t *Trace) add(text string, began int) error {
	c, err := parse(text)
	switch {
	case err != nil:
		return err
	case c.result == unknown && c.writes() && !strings.HasSuffix(c.name, "sync"):
		return fmt.Errorf("%s was cut short by the end of its process, and nobody knows whether it took effect", c.name)
	case c.result < 0 || !c.writes():
	case !slices.Contains(strings.Split(followed, ","), c.name):
		return fmt.Errorf("%s is not followed: write the files in another way, or follow it", c.name)
	default:
		t.steps = append(t.steps, step{began, c})
	}
	return nil
}

// writes reports whether a call changes stored data or file positions.
func (c call) writes() bool {
	switch c.name {
	case "openat":
		return strings.Contains(c.args[2], "O_WRONLY") || strings.Contains(c.args[2], "O_RDWR")
	case "mmap":
		return strings.Contains(c.args[2], "PROT_WRITE") && strings.Contains(c.args[3], "MAP_SHARED")
	}
	return true
}

// unknown is the result of a call during which its thread ended.
const unknown = math.MinInt64

// parse parses a call. All strings are escaped, so commas and brackets only separate arguments.
func parse(text string) (call, error) {
	name, rest, ok := strings.Cut(text, "(")
	at := strings.LastIndex(rest, ") = ")
	if at < 0 {
		at = strings.LastIndex(rest, ") ") // strace pads short calls
	}
	_, result, found := strings.Cut(rest[max(at, 0):], "= ")
	if !ok || at < 0 || !found {
		return call{}, fmt.Errorf("not a line of strace: %.100s", text)
	}
	result, _, _ = strings.Cut(result, " ")
	result, _, _ = strings.Cut(result, "<")
	c := call{name: name, args: strings.Split(rest[:at], ", ")}
	if result == "?" { // the thread ended
		c.result = unknown
		return c, nil
	}
	n, err := strconv.ParseInt(result, 0, 64)
	if err != nil {
		return call{}, fmt.Errorf("result of %s: %w", name, err)
	}
	c.result = n
	if n >= 0 && (name == "write" || name == "pwrite64") {
		if c.data, err = unescape(c.args[1]); err != nil {
			return call{}, fmt.Errorf("%s: %w", name, err)
		}
		c.data, c.args[1] = c.data[:n:n], ""
	}
	for i, arg := range c.args {
		c.args[i] = strings.Clone(arg) // does not retain the whole line
	}
	return c, nil
}

// escape escapes text like strace.
func escape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "\\x%02x", c)
	}
	return b.String()
}

// unescape returns the bytes of an argument "\x61\x62".
func unescape(arg string) ([]byte, error) {
	text, is := strings.CutPrefix(arg, `"`)
	text, ends := strings.CutSuffix(text, `"`)
	if !is || !ends {
		return nil, fmt.Errorf("not text, or cut short: %.40s", arg)
	}
	return unhex(text)
}

// unhex returns the bytes of \x61\x62.
func unhex(text string) ([]byte, error) {
	const escape = `\x`
	const each = len(escape) + 2
	made := make([]byte, len(text)/each)
	for k := range made {
		one := text[k*each : (k+1)*each]
		_, err := hex.Decode(made[k:k+1], []byte(one[len(escape):]))
		if err != nil || !strings.HasPrefix(one, escape) {
			return nil, fmt.Errorf("not a byte as strace writes it: %s", one)
		}
	}
	if len(text)%each != 0 {
		return nil, fmt.Errorf("a part of a byte of strace: %s", text[len(made)*each:])
	}
	return made, nil
}

// descriptor returns the path of an argument 3<\x2f\x61>.
func descriptor(arg string) (string, error) {
	_, text, ok := strings.Cut(arg, "<")
	text, _, ends := strings.Cut(text, ">")
	if !ok || !ends {
		return "", fmt.Errorf("a descriptor without a path: %.40s", arg)
	}
	path, err := unhex(text)
	return string(path), err
}

// deleted is the suffix of a descriptor whose file has no name left.
const deleted = "(deleted)"
