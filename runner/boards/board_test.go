package boards

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"os/exec"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// open starts an emulated board.
func open(t *testing.T, name string) *Board {
	t.Helper()
	d, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(d.Command[0]); err != nil {
		t.Skipf("no emulator of boards: %v", err)
	}
	machine, err := registry.Target(d.Target, 0)
	if err != nil {
		t.Fatal(err)
	}
	tc, err := toolchain.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), Config{Description: d, Machine: machine, Toolchain: tc, Scratch: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// client starts a session with a board.
func client(t *testing.T, b *Board) (*Client, Hello) {
	t.Helper()
	line, err := b.Line(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { line.Close() })
	c := NewClient(line, session())
	hello, err := c.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return c, hello
}

// codes holds machine code of candidates, by board.
var codes = map[string]map[string][]uint32{
	"mps2-an500": thumb, "mps3-an547": thumb,
	"riscv32-virt": {
		"return":     {0x00008067},                         // ret
		"count":      {0xfff50513, 0xfe051ee3, 0x00008067}, // addi a0, a0, -1; bnez a0, .-4; ret
		"hang":       {0x0000006f},                         // j .
		"instruct":   {0x00000000},
		"store":      {0x00b52023, 0x00008067}, // sw a1, 0(a0); ret
		"privileged": {0x30047073, 0x0000006f}, // csrci mstatus, 8; j .
	},
}

var thumb = map[string][]uint32{
	"return":     {0xbf004770},             // bx lr; nop
	"count":      {0xd1fd3801, 0xbf004770}, // subs r0, #1; bne .-2; bx lr
	"hang":       {0xbf00e7fe},             // b .
	"instruct":   {0xbf00de00},             // udf
	"store":      {0x47706001},             // str r1, [r0]; bx lr
	"privileged": {0xe7feb672},             // cpsid i; b .
}

func place(t *testing.T, c *Client, at uint32, code []uint32) {
	t.Helper()
	var data []byte
	for _, w := range code {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	if err := c.Write(at, data); err != nil {
		t.Fatal(err)
	}
}

func TestMonitorsRunCandidatesAndSurviveThem(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			b := open(t, name)
			c, hello := client(t, b)
			t.Logf("%+v", hello)
			at, stack := hello.Memory+64, hello.Memory+0x10000
			call := func(code string, arguments ...uint32) Called {
				t.Helper()
				place(t, c, at, codes[name][code])
				request := Call{Entry: at, Stack: stack, Deadline: hello.Hertz / 10, Cold: true}
				copy(request.Arguments[:], arguments)
				called, err := c.Call(request, 10*time.Second)
				if err != nil {
					t.Fatalf("%s: %v", code, err)
				}
				t.Logf("%s %v: %+v", code, arguments, called)
				return called
			}
			for _, one := range []struct {
				code      string
				arguments []uint32
				want      Ending
			}{
				{"return", nil, Returned}, {"instruct", nil, Fault}, {"hang", nil, Deadline},
				{"store", []uint32{at + 0x100, 7}, Returned}, {"store", []uint32{0x20000000, 7}, Fault},
				{"store", []uint32{0xE000ED08, 7}, Fault}, {"store", []uint32{0xF0000000, 7}, Fault},
			} {
				if got := call(one.code, one.arguments...); got.Ending != one.want {
					t.Errorf("%s %#x: %+v", one.code, one.arguments, got)
				}
			}
			if got := call("privileged"); got.Ending == Returned {
				t.Errorf("privileged: %+v", got)
			}
			few, many := call("count", 1000), call("count", 101000)
			if few.Ending != Returned || many.Ticks < 50*few.Ticks {
				t.Errorf("1000 rounds take %d ticks, 101000 take %d", few.Ticks, many.Ticks)
			}
			if again := call("count", 101000); again.Ticks > many.Ticks+many.Ticks/1000+2 || many.Ticks > again.Ticks+many.Ticks/1000+2 {
				t.Errorf("the same takes %d ticks, then %d", many.Ticks, again.Ticks)
			}
			word, err := c.Read(at+0x100, 4)
			if err != nil || binary.LittleEndian.Uint32(word) != 7 {
				t.Errorf("what was stored is %v (%v)", word, err)
			}
		})
	}
}

func TestMemoryIsWrittenFilledReadAndSummed(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			c, hello := client(t, open(t, name))
			data := make([]byte, 20_003)
			for k := range data {
				data[k] = byte(k * k >> 3)
			}
			begin := time.Now()
			if err := c.Write(hello.Memory, data); err != nil {
				t.Fatal(err)
			}
			wrote := time.Since(begin)
			back, err := c.Read(hello.Memory, uint32(len(data)))
			if err != nil || string(back) != string(data) {
				t.Fatalf("%d bytes came back: %v", len(back), err)
			}
			t.Logf("writing 20 kB: %v, reading: %v", wrote, time.Since(begin)-wrote)
			begin = time.Now()
			sum, err := c.Sum(hello.Memory, uint32(len(data)))
			if err != nil || sum != crc32.ChecksumIEEE(data) {
				t.Errorf("the sum is %#x: %v", sum, err)
			}
			t.Logf("summing: %v", time.Since(begin))
			if err := c.Fill(hello.Memory+10, 19_000, 0xC5); err != nil {
				t.Fatal(err)
			}
			back, err = c.Read(hello.Memory+19_009, 2)
			if err != nil || back[0] != 0xC5 || back[1] != data[19_010] {
				t.Errorf("the end of what was filled: %x (%v)", back, err)
			}
			for _, bad := range []struct{ at, size uint32 }{{hello.Memory - 1, 4}, {hello.Memory + hello.MemoryBytes - 3, 4}, {0, 4}, {0xFFFFFFFF, 8}} {
				if _, err := c.Read(bad.at, bad.size); err == nil {
					t.Errorf("%d bytes at %#x were read", bad.size, bad.at)
				}
			}
			if err := c.Write(hello.Memory+hello.MemoryBytes-4, []byte{1, 2, 3, 4}); err != nil {
				t.Errorf("the last word: %v", err)
			}
		})
	}
}
