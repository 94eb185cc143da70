package boards

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/compiler/boardmonitor"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Config configures Open.
type Config struct {
	Description
	// Machine is the target of the description.
	Machine *target.Target
	// Toolchain builds monitors; nil if none needs to be built.
	Toolchain *toolchain.Toolchain
	// Scratch is a folder for monitors.
	Scratch string
	// Patience is how long the board may be silent before it is reset; 0 means 20 s.
	Patience time.Duration
	Logger   *slog.Logger
}

// Board is a connection to a board. It is safe for concurrent use.
type Board struct {
	cfg     Config
	command []string

	mu      sync.Mutex
	line    *os.File
	process *exec.Cmd
	hello   Hello
	// resets counts the resets of the board.
	resets int
	// gone is set if the board did not answer after a reset.
	gone bool
}

// Open connects to a board and waits until it answers.
func Open(ctx context.Context, cfg Config) (*Board, error) {
	b := &Board{cfg: cfg, command: slices.Clone(cfg.Command)}
	if err := b.buildMonitor(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.begin(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// buildMonitor builds the monitor that the command names.
func (b *Board) buildMonitor(ctx context.Context) error {
	at := slices.Index(b.command, monitorWord)
	if at < 0 {
		return nil
	}
	made, err := boardmonitor.Find(b.cfg.Name)
	if err != nil {
		return err
	}
	if b.cfg.Toolchain == nil {
		return fmt.Errorf("building the monitor of board %s: no C compiler here: install clang-19 and lld-19", b.cfg.Name)
	}
	path, err := filepath.Abs(filepath.Join(b.cfg.Scratch, "monitor-"+b.cfg.Name+".elf"))
	if err != nil {
		return err
	}
	if err := b.cfg.Toolchain.Build(ctx, made.Build(b.cfg.Machine), path); err != nil {
		return fmt.Errorf("building the monitor of board %s: %w", b.cfg.Name, err)
	}
	b.command[at] = path
	return nil
}

// begin opens the link and greets the board.
func (b *Board) begin(ctx context.Context) (err error) {
	if len(b.command) > 0 {
		b.line, err = b.start()
	} else {
		b.line, err = openTTY(b.cfg.TTY, b.cfg.Baud)
	}
	if err != nil {
		return fmt.Errorf("board %s: %w", b.name(), err)
	}
	return b.greet(ctx)
}

func (b *Board) name() string { return cmp.Or(b.cfg.Name, b.cfg.Target) }

// start starts the command with one end of a socket and returns the other.
func (b *Board) start() (*os.File, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a link: %w", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return nil, errors.Join(err, unix.Close(ends[0]), unix.Close(ends[1]))
	}
	here, there := os.NewFile(uintptr(ends[0]), "board"), os.NewFile(uintptr(ends[1]), "link")
	defer there.Close()
	b.process = exec.Command(b.command[0], b.command[1:]...)
	b.process.ExtraFiles = []*os.File{there}
	b.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := b.process.Start(); err != nil {
		b.process = nil
		return nil, errors.Join(fmt.Errorf("starting it: %w%s", err, remedy(err, b.command[0])), here.Close())
	}
	return here, nil
}

func remedy(err error, program string) string {
	packages := map[string]string{"qemu-system-arm": "qemu-system-arm", "qemu-system-riscv32": "qemu-system-misc"}
	if p := packages[filepath.Base(program)]; p != "" && errors.Is(err, exec.ErrNotFound) {
		return ": install the Debian package " + p
	}
	return ""
}

// bounded is a line whose operations fail once the context has ended.
type bounded struct {
	*os.File
	ctx context.Context //nolint:containedctx // the context of one greeting
}

// SetDeadline fails if the context has ended. Otherwise a new deadline would undo the one set when the context ended.
func (l bounded) SetDeadline(t time.Time) error {
	return errors.Join(l.File.SetDeadline(t), context.Cause(l.ctx))
}

// session returns a random number.
func session() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}

// greet asks the board to identify itself.
func (b *Board) greet(ctx context.Context) error {
	if err := b.control(func(fd int) error { return unix.SetNonblock(fd, true) }); err != nil { // a harness may have changed that
		return fmt.Errorf("board %s: %w", b.name(), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = b.line.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c := NewClient(bounded{b.line, ctx}, session())
	c.Patience = cmp.Or(b.cfg.Patience, c.Patience)
	hello, err := c.Begin()
	if err != nil {
		return fmt.Errorf("board %s: %w", b.name(), err)
	}
	if b.cfg.Name != "" && hello.Board != b.cfg.Name {
		return fmt.Errorf("board %s: its monitor is that of %s", b.cfg.Name, hello.Board)
	}
	b.hello = hello
	return nil
}

// Hello returns the latest greeting of the board's monitor.
func (b *Board) Hello() Hello {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hello
}

// Emulated reports whether the board is emulated.
func (b *Board) Emulated() bool { return b.cfg.Emulator }

// Resets returns how often the board was reset because it stopped answering.
func (b *Board) Resets() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.resets
}

// control calls do with the link's descriptor.
func (b *Board) control(do func(fd int) error) error {
	raw, err := b.line.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = do(int(fd)) })
	return cmp.Or(err, failed)
}

// Line opens the link to the board. It first resets a board that does not answer. The caller must close the file.
func (b *Board) Line(ctx context.Context) (line *os.File, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err = b.ensureResponsive(ctx)
	if ctx.Err() == nil {
		b.logState(err)
	}
	if err != nil {
		return nil, err
	}
	err = b.control(func(fd int) error {
		again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			line = os.NewFile(uintptr(again), "link")
		}
		return err
	})
	return line, err
}

// logState logs once that the board is gone, and once that it is back.
func (b *Board) logState(err error) {
	switch gone := err != nil; {
	case gone && !b.gone:
		b.cfg.Logger.Warn("the board does not answer: measurements wait until it does", "board", b.name(), "error", err)
	case !gone && b.gone:
		b.cfg.Logger.Info("the board answers again", "board", b.name())
	}
	b.gone = err != nil
}

// ensureResponsive makes sure that the board answers.
func (b *Board) ensureResponsive(ctx context.Context) error {
	if b.line != nil {
		err := b.greet(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		b.cfg.Logger.Warn("the board is reset", "board", b.name(), "error", err)
	}
	b.resets++
	return b.reset(ctx)
}

// reset restarts the board.
func (b *Board) reset(ctx context.Context) error {
	if err := b.close(); err != nil {
		b.cfg.Logger.Warn("the board's link does not close", "board", b.name(), "error", err)
	}
	if len(b.cfg.Reset) > 0 {
		out, err := exec.CommandContext(ctx, b.cfg.Reset[0], b.cfg.Reset[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("board %s: resetting it: %w: %.200s", b.name(), err, strings.TrimSpace(string(out)))
		}
	}
	return b.begin(ctx)
}

// close closes the link and stops the command.
func (b *Board) close() (err error) {
	if b.line != nil {
		err = b.line.Close()
		b.line = nil
	}
	if b.process != nil {
		_ = b.process.Process.Kill() // an error means that it has ended
		_ = b.process.Wait()         // reports that it was killed
		b.process = nil
	}
	return err
}

// Close disconnects from the board and stops an emulator.
func (b *Board) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.close()
}
