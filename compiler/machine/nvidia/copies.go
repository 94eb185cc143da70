package nvidia

import "github.com/tilth-dev/tilth/compiler/ir"

var groups = ir.Param{Name: "groups", Form: ir.Number}

// Copies are the copies to shared memory that threads start (cp.async).
var Copies = &ir.Async{
	Name:   "copies",
	Commit: &ir.Instruction{Name: "copy.commit", By: ir.ByBlock, Orders: true, Text: "COPY_COMMIT();"},
	Wait:   &ir.Instruction{Name: "copy.wait", By: ir.ByBlock, Orders: true, Params: []ir.Param{groups}, Text: "COPY_WAIT(%s);"},
}

func init() { Copies.Wait.Waits = Copies }
