package cuda_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// mapMaker asks a driver for tensor maps of boxes, each with a single fault.
const mapMaker = `#include "driver.c"
#include "map.c"
#include <stdio.h>
int main(int argc, char **argv) {
  static const struct tilth_boxes good = {4, 128, 2, {72, 40}, {2, 144}, {64, 16}};
  struct { const char *name; struct tilth_boxes boxes; int apart; } all[] = {
      {"good", good, 0}, {"address", good, 8}, {"type", good, 0}, {"panel", good, 0}, {"dimensions", good, 0}, {"extent", good, 0},
      {"stride", good, 0}, {"no box", good, 0}, {"long box", good, 0}, {"wide box", good, 0}, {"narrow box", good, 0}};
  all[2].boxes.dtype = 2, all[3].boxes.panel = 64, all[4].boxes.n = 0, all[5].boxes.extents[1] = 0, all[6].boxes.strides[1] = 150;
  all[7].boxes.box[1] = 0, all[8].boxes.box[1] = 257, all[9].boxes.box[0] = 72, all[10].boxes.box[0] = 4;
  static struct driver d;
  struct driver_map map;
  char message[256];
  if (driver_open(&d, argv[1], message, sizeof message)) return puts(message), 1;
  for (unsigned k = 0; k < sizeof all / sizeof *all; k++)
    printf("%s %d\n", all[k].name, driver_encode(&d, &all[k].boxes, 4096 + all[k].apart, &map));
  d.cuTensorMapEncodeTiled = NULL;
  printf("old %d\n", driver_encode(&d, &good, 4096, &map));
  return 0;
}
`

// TestInvalidTensorMapsAreRefused covers the addresses, strides and boxes that the documentation excludes. A driver
// that is too old reports that it does not support tensor maps.
func TestInvalidTensorMapsAreRefused(t *testing.T) {
	driver := fake(t)
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "maps")
	if err := tc.Build(t.Context(), toolchain.Build{
		Target: on, Form: toolchain.Executable, Headers: cuda.DriverSources(), Sources: []toolchain.File{{Name: "unit.c", Text: mapMaker}},
	}, program); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, driver.Library()).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "good 0\naddress 1\ntype 1\npanel 1\ndimensions 1\nextent 1\nstride 1\nno box 1\nlong box 1\nwide box 1\nnarrow box 1\nold 801\n"
	if string(out) != want {
		t.Errorf("it answers\n%swant\n%s", out, want)
	}
}
