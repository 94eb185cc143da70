package ir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Instruction is an operation of a machine that is more than a store and less than a loop. Passes, the verifier and
// the printers know instructions by this description alone; package machine and those below it list them.
type Instruction struct {
	// Name identifies the instruction in the text of a kernel.
	Name   string
	Params []Param
	By     Executor
	// Starts is the kind of asynchronous operation that the instruction starts; nil if it is over when the next
	// statement begins. Waits is the kind that it waits for.
	Starts, Waits *Async
	// Orders is set if the instruction moves no data, but orders other operations.
	Orders bool
	// Text is C code: a format of the operands, each as the Form of its parameter determines. Prelude is what it
	// needs; nil if nothing.
	Text    string
	Prelude *Prelude
	// Meaning is what the instruction computes; nil if that is not described.
	Meaning *Meaning
}

// Prelude is C code that instructions need, which precedes a kernel once, after the declarations of vector types. It
// may consist of these alone, without a name.
type Prelude struct {
	Name, Text string
	Vectors    []Vectors
}

// Plain stands for the meaning of the instruction in the text of its prelude: plain code on operands with the names of
// the parameters.
const Plain = "  {plain}\n"

// Vectors is a vector type.
type Vectors struct {
	Type  array.DType
	Lanes int64
}

// Alternative is C code for vectors of some number of lanes, for targets that satisfy a condition of the preprocessor.
type Alternative struct {
	Lanes    int64
	If, Code string
}

// Executor identifies the threads that execute an instruction together.
type Executor uint8

// The executors. Those of ByThread and ByGroup are inside a loop over threads.
const (
	// ByWorker is a thread of a processor.
	ByWorker Executor = iota
	// ByThread is each thread of a block on its own.
	ByThread
	// ByGroup is some threads of a block together: a warp or a warpgroup.
	ByGroup
	// ByBlock is each thread of a block, in uniform control flow outside loops over threads.
	ByBlock
	// ByAny is each thread of a block, anywhere.
	ByAny
)

// Param describes an operand of an instruction.
type Param struct {
	Name string
	Use  Use
	// In is the memory space of the operand; Argument means any that a kernel addresses, and for a Variable a
	// register, too. Swizzled operands are in the layout of tensor maps.
	In       Space
	Swizzled bool
	// Bytes is the size of the contiguous elements from the operand's index on that a thread accesses; 0 means any.
	// Lanes is the number of elements of a Variable.
	Bytes, Lanes int64
	// Async is set if the elements are accessed until the operation that the instruction starts has been waited for.
	Async bool
	Form  Form
}

// Use is what an instruction does to the elements of an operand.
type Use uint8

// The uses. A Value is a number instead of elements, and Ordered elements are not accessed.
const (
	Value Use = iota
	Read
	Write
	Update
	Ordered
)

// Form is the C code of an operand.
type Form uint8

// The forms.
const (
	// Number is an index, or the value of an expression.
	Number Form = iota
	// Address is the address of an element.
	Address
	// Strided is the address of an element, followed by the distance between rows in elements.
	Strided
	// StridedBytes is the address of an element, followed by the distance between rows in bytes.
	StridedBytes
	// Place is an array and an index.
	Place
	// Whole is an array and its length.
	Whole
	// Variable is a vector in a variable or in memory.
	Variable
	// Mapped is a tensor map.
	Mapped
	// Named is the number of a register.
	Named
)

// Async is a kind of asynchronous operation.
type Async struct {
	Name string
	// Commit closes the group of operations that have started, and Wait waits until at most a number of groups, its
	// only operand, are under way. They are nil for operations that are waited for one by one.
	Commit, Wait *Instruction
	// Fence orders the threads' accesses to shared memory before those of the operations, after the next barrier; nil
	// if they are ordered without it.
	Fence *Instruction
	// Published is set if what the operations wrote is visible to all threads that wait for them, without a barrier.
	Published bool
}

// Call executes an instruction.
type Call struct {
	*Instruction
	// Args holds the operands in the order of the parameters.
	Args []Arg
}

func (*Call) stmt() {}

// Apply is the value of an instruction on values, which has no other effect.
type Apply struct {
	*Instruction
	Type   array.DType
	Values []expr.Expr
}

// DType returns the type of the value.
func (a *Apply) DType() array.DType { return a.Type }

// Operands returns the operands.
func (a *Apply) Operands() []expr.Expr { return a.Values }

// Map replaces the operands.
func (a *Apply) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	c := *a
	c.Values = make([]expr.Expr, len(a.Values))
	for k, x := range a.Values {
		c.Values[k] = f(x)
	}
	return &c
}

// Arg is an operand: elements of a tensor, or a value.
type Arg struct {
	// Tensor is nil for a value. Buffer must be set for an operand that is written, or in a register.
	Tensor *expr.Tensor
	Buffer *Buffer
	// Index is the first element, or the value.
	Index expr.Expr
	// Stride is the distance between rows in elements, if the instruction has several.
	Stride int64
	// Map is the tensor map of a Mapped operand.
	Map *TensorMap
}

// At returns the elements of a buffer from an index on as an operand.
func At(b *Buffer, index expr.Expr) Arg { return Arg{Tensor: b.Tensor, Buffer: b, Index: index} }

// All returns a buffer as an operand.
func All(b *Buffer) Arg { return At(b, expr.I(0)) }

// In returns the elements of a tensor that is not written, from an index on, as an operand.
func In(t *expr.Tensor, index expr.Expr) Arg { return Arg{Tensor: t, Index: index} }

// Of returns a value as an operand.
func Of(e expr.Expr) Arg { return Arg{Index: e} }

// Exec returns a call of an instruction.
func Exec(i *Instruction, args ...Arg) *Call { return &Call{Instruction: i, Args: args} }

// exprs calls f for each operand: the first element if it is read, and its index otherwise.
func (c *Call) exprs(f func(expr.Expr)) {
	for k, a := range c.Args {
		switch c.Params[k].Use {
		case Read, Update:
			f(a.Tensor.At(a.Index))
		default:
			f(a.Index)
		}
	}
}

// rewritten returns a copy with the expressions of its operands replaced; elements that are read must remain elements.
func (c *Call) rewritten(f func(expr.Expr) expr.Expr) *Call {
	done := Exec(c.Instruction, slices.Clone(c.Args)...)
	for k := range done.Args {
		a := &done.Args[k]
		if c.Params[k].Use != Read {
			a.Index = f(a.Index)
			continue
		}
		load := f(a.Tensor.At(a.Index)).(*expr.Load)
		a.Tensor, a.Index = load.Tensor, load.Index[0]
	}
	return done
}

// written returns the operand that the instruction writes, or nil.
func (c *Call) written() *Arg {
	for k, p := range c.Params {
		if p.Use == Write || p.Use == Update {
			return &c.Args[k]
		}
	}
	return nil
}

// Reads reports whether the instruction reads elements of a tensor.
func (c *Call) Reads(t *expr.Tensor) bool {
	for k, a := range c.Args {
		if use := c.Params[k].Use; (use == Read || use == Update) && a.Tensor == t {
			return true
		}
	}
	return false
}

// executed checks the control flow around an instruction.
func (v *verifier) executed(i *Instruction) error {
	switch {
	case (i.By == ByThread || i.By == ByGroup) && !v.threads:
		return fmt.Errorf("%s is outside a thread loop", i.Name)
	case i.By == ByBlock && (v.threads || !v.blocks):
		return fmt.Errorf("%s is in divergent control flow", i.Name)
	}
	return nil
}

// call checks the operands of a call, and the control flow around it.
func (v *verifier) call(c *Call) error {
	if len(c.Args) != len(c.Params) {
		return fmt.Errorf("%s has %d operands instead of %d", c.Name, len(c.Args), len(c.Params))
	}
	if err := v.executed(c.Instruction); err != nil {
		return err
	}
	for k, p := range c.Params {
		a := c.Args[k]
		if p.Use == Value {
			continue
		}
		b := v.buffers[a.Tensor]
		switch {
		case b == nil:
			return fmt.Errorf("operand %s of %s is out of scope", p.Name, c.Name)
		case p.In != Argument && b.Space != p.In || p.In == Argument && (b.Space == Tile || b.Space == Register && p.Form != Variable):
			return fmt.Errorf("operand %s of %s lies in %v memory", p.Name, c.Name, b.Space)
		case p.Swizzled != (b.Row > 0) && b.Space == Shared:
			return fmt.Errorf("operand %s of %s is in the wrong layout", p.Name, c.Name)
		case p.Form == Mapped && a.Map == nil:
			return fmt.Errorf("operand %s of %s has no tensor map", p.Name, c.Name)
		}
	}
	return nil
}

// Words are the parts of C code that operands consist of.
type Words interface {
	// Array returns the name of a tensor's memory, Element an element, Vector a number of elements from one on, and
	// Map the name of an operand's tensor map.
	Array(t *expr.Tensor) string
	Element(t *expr.Tensor, index expr.Expr) string
	Vector(t *expr.Tensor, index expr.Expr, lanes int64) string
	Map(a Arg) string
	// Number returns an index or a value.
	Number(e expr.Expr) string
}

// Code returns the call as C code.
func (c *Call) Code(w Words) string {
	args := make([]any, len(c.Args))
	for k, a := range c.Args {
		args[k] = a.code(c.Params[k], w)
	}
	return fmt.Sprintf(c.Text, args...)
}

func (a Arg) code(p Param, w Words) string {
	switch p.Form {
	case Address:
		return "&" + w.Element(a.Tensor, a.Index)
	case Strided:
		return fmt.Sprintf("&%s, %d", w.Element(a.Tensor, a.Index), a.Stride)
	case StridedBytes:
		return fmt.Sprintf("&%s, %d", w.Element(a.Tensor, a.Index), a.Stride*a.Tensor.DType.Bytes())
	case Place:
		return fmt.Sprintf("%s, %s", w.Array(a.Tensor), w.Number(a.Index))
	case Whole:
		return fmt.Sprintf("%s, %d", w.Array(a.Tensor), a.Tensor.Shape[0])
	case Variable:
		return w.Vector(a.Tensor, a.Index, p.Lanes)
	case Mapped:
		return w.Map(a)
	case Named:
		return fmt.Sprint(a.Buffer.Index)
	}
	return w.Number(a.Index)
}

// call prints a call of an instruction.
func (t *texter) call(c *Call) {
	args := make([]string, len(c.Args))
	for k, a := range c.Args {
		args[k] = t.arg(c.Params[k], a)
	}
	t.line("%s", strings.TrimSpace(c.Name+" "+strings.Join(args, ", ")))
}

func (t *texter) arg(p Param, a Arg) string {
	if p.Use == Value {
		return t.expr(a.Index)
	}
	text := a.Tensor.Name
	if name, defined := t.registers[a.Tensor]; defined {
		return name
	}
	switch p.Form {
	case Whole, Named:
	case Mapped:
		var box []string
		for _, d := range a.Map.Dims {
			box = append(box, fmt.Sprint(d.Box))
		}
		text += " in boxes of " + strings.Join(box, "x")
	default:
		text += fmt.Sprintf("[%s]", t.expr(a.Index))
	}
	if a.Stride > 0 {
		text += fmt.Sprintf(" by %d", a.Stride)
	}
	return text
}
