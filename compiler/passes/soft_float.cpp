// SPDX-License-Identifier: Apache-2.0
// Soft float: BPF has no floating point, so float and double become i32 and i64, and what computes on them becomes calls of
// sdk/lambda_float.h. Those functions are carried here as bitcode; only what a module calls is linked into it.
#include "passes.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/AttributeMask.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace
{

const unsigned char runtime[] = {
#embed "soft_float_runtime.bc"
};

// The rounding modes of lambda_f32_round() and lambda_f64_round().
enum Way { Even, Down, Up, Zero, Away };

bool isFloat(Type *type)
{
	return type->isFloatTy() || type->isDoubleTy();
}

bool isFloatVector(Type *type)
{
	return type->isVectorTy() && isFloat(type->getScalarType());
}

// The type that holds the bit pattern of a float or double; other types are as they were.
Type *bitsType(Type *type)
{
	return isFloat(type) ? Type::getIntNTy(type->getContext(), type->getPrimitiveSizeInBits()) : type;
}

FunctionType *bitsType(FunctionType *type)
{
	SmallVector<Type *> params;
	for (Type *param : type->params())
		params.push_back(bitsType(param));
	return FunctionType::get(bitsType(type->getReturnType()), params, type->isVarArg());
}

template <typename Test> bool anyType(Instruction &inst, Test test)
{
	return test(inst.getType()) || any_of(inst.operands(), [&](Use &use) { return test(use->getType()); });
}

template <typename Test> bool anyType(Function &function, Test test)
{
	return any_of(function.args(), [&](Argument &arg) { return test(arg.getType()); }) ||
	       test(function.getReturnType()) || any_of(function, [&](BasicBlock &block) {
		       return any_of(block, [&](Instruction &inst) { return anyType(inst, test); });
	       });
}

// Rewrites one function, whose own parameters and result are integers already.
class Lowering
{
      public:
	Lowering(Function &function, ArrayRef<std::pair<Value *, Value *>> args)
	    : function(function), module(*function.getParent()), build(function.getContext()),
	      known(args.begin(), args.end())
	{
	}

	void run();

      private:
	Value *lower(Instruction &inst);
	Value *lowerCall(CallInst &call);
	Value *lowerIntrinsic(IntrinsicInst &call);
	Value *unsupported(Instruction &inst, const Twine &what);

	Value *bits(Value *value);
	Value *call(Type *precision, const char *operation, Type *result, ArrayRef<Value *> args);
	Value *call(const char *name, Type *result, ArrayRef<Value *> args);
	Value *round(Value *operand, Way way);
	Value *compare(CmpInst::Predicate predicate, Value *left, Value *right);
	Value *fromInteger(Instruction &inst, bool isSigned);
	Value *toInteger(Value *operand, Type *type, bool isSigned, bool saturate);
	Value *convert(Value *operand, Type *type);
	Value *remainder(Value *left, Value *right);
	Value *sum(BinaryOperator &add);
	CallInst *takeProduct(Value *operand, BinaryOperator &add);
	Value *lesser(Value *left, Value *right, CmpInst::Predicate predicate);
	Value *isClass(Value *operand, unsigned classes);

	APInt infinity(Type *type)
	{
		return APFloat::getInf(type->getFltSemantics()).bitcastToAPInt();
	}
	Value *magnitude(Value *operand)
	{
		APInt mask = APInt::getSignedMaxValue(operand->getType()->getPrimitiveSizeInBits());
		return build.CreateAnd(bits(operand), build.getInt(mask));
	}
	Value *sign(Value *operand)
	{
		APInt mask = APInt::getSignMask(operand->getType()->getPrimitiveSizeInBits());
		return build.CreateAnd(bits(operand), build.getInt(mask));
	}
	Value *isNaN(Value *operand)
	{
		return build.CreateICmpUGT(magnitude(operand), build.getInt(infinity(operand->getType())));
	}

	Function &function;
	Module &module;
	IRBuilder<> build;
	DenseMap<Value *, Value *> known; // the bits of each float value
};

// In reverse post-order, an operand comes before its users. Only operands of phis may come later: phis are filled last.
void Lowering::run()
{
	removeUnreachableBlocks(function);
	SmallVector<Instruction *> old;
	SmallVector<PHINode *> phis;
	for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
		for (Instruction &inst : *block)
			if (anyType(inst, isFloat))
				old.push_back(&inst);
	for (Instruction *inst : old) {
		build.SetInsertPoint(inst);
		if (DISubprogram *program = function.getSubprogram(); program && !inst->getDebugLoc())
			build.SetCurrentDebugLocation(DILocation::get(function.getContext(), 0, 0, program));
		Value *value = lower(*inst);
		if (isFloat(inst->getType()))
			known[inst] = value;
		else if (value)
			inst->replaceAllUsesWith(value);
		if (auto *phi = dyn_cast<PHINode>(inst))
			phis.push_back(phi);
	}
	for (PHINode *phi : phis)
		for (auto [block, value] : zip(phi->blocks(), phi->incoming_values()))
			cast<PHINode>(known[phi])->addIncoming(bits(value), block);
	for (Instruction *inst : old) {
		inst->replaceAllUsesWith(PoisonValue::get(inst->getType()));
		inst->eraseFromParent();
	}
}

Value *Lowering::unsupported(Instruction &inst, const Twine &what)
{
	module.getContext().diagnose(
		DiagnosticInfoUnsupported(function, "soft float has no " + what, inst.getDebugLoc()));
	Type *type = bitsType(inst.getType());
	return type->isVoidTy() ? nullptr : PoisonValue::get(type);
}

Value *Lowering::bits(Value *value)
{
	if (!isFloat(value->getType()))
		return value;
	if (auto *constant = dyn_cast<Constant>(value))
		return ConstantExpr::getBitCast(constant, bitsType(value->getType()));
	Value *found = known.lookup(value);
	assert(found && "float operand before its definition");
	return found;
}

Value *Lowering::call(const char *name, Type *result, ArrayRef<Value *> args)
{
	SmallVector<Value *> values;
	SmallVector<Type *> types;
	for (Value *arg : args) {
		values.push_back(bits(arg));
		types.push_back(values.back()->getType());
	}
	FunctionCallee callee = module.getOrInsertFunction(name, FunctionType::get(result, types, false));
	CallInst *made = build.CreateCall(callee, values);
	made->setDoesNotAccessMemory();
	made->setDoesNotThrow();
	made->addFnAttr(Attribute::WillReturn);
	return made;
}

Value *Lowering::call(Type *precision, const char *operation, Type *result, ArrayRef<Value *> args)
{
	std::string name = (precision->isFloatTy() ? "lambda_f32_" : "lambda_f64_") + std::string(operation);
	return call(name.c_str(), result, args);
}

Value *Lowering::round(Value *operand, Way way)
{
	return call(operand->getType(), "round", bitsType(operand->getType()), { operand, build.getInt32(way) });
}

// lambda_f32_compare() and lambda_f64_compare() return one of the bits that LLVM's predicates consist of.
Value *Lowering::compare(CmpInst::Predicate predicate, Value *left, Value *right)
{
	auto neverNaN = [](Value *value) {
		auto *constant = dyn_cast<ConstantFP>(value);
		return constant && !constant->isNaN();
	};
	if (predicate == CmpInst::FCMP_TRUE || predicate == CmpInst::FCMP_FALSE)
		return build.getInt1(predicate == CmpInst::FCMP_TRUE);
	if (predicate == CmpInst::FCMP_UNO || predicate == CmpInst::FCMP_ORD) {
		Value *either = isNaN(left);
		if (left != right && !neverNaN(right))
			either = build.CreateOr(either, isNaN(right));
		return predicate == CmpInst::FCMP_UNO ? either : build.CreateNot(either);
	}
	Value *relation = call(left->getType(), "compare", build.getInt32Ty(), { left, right });
	return build.CreateIsNotNull(build.CreateAnd(relation, build.getInt32(predicate)));
}

Value *Lowering::fromInteger(Instruction &inst, bool isSigned)
{
	Value *integer = inst.getOperand(0);
	if (integer->getType()->getIntegerBitWidth() > 64)
		return unsupported(inst, "conversion from integers of more than 64 bits");
	integer = build.CreateIntCast(integer, build.getInt64Ty(), isSigned);
	std::string name = std::string(isSigned ? "lambda_i64_to_" : "lambda_u64_to_") +
			   (inst.getType()->isFloatTy() ? "f32" : "f64");
	return call(name.c_str(), bitsType(inst.getType()), { integer });
}

// A value that does not fit the integer becomes the nearest one that does, as llvm.fpto[su]i.sat says; without saturate it may be anything.
Value *Lowering::toInteger(Value *operand, Type *type, bool isSigned, bool saturate)
{
	Value *wide = call(operand->getType(), isSigned ? "to_i64" : "to_u64", build.getInt64Ty(), { operand });
	unsigned width = type->getIntegerBitWidth();
	if (saturate && width < 64 && isSigned) {
		Value *high = build.getInt(APInt::getSignedMaxValue(width).sext(64));
		Value *low = build.getInt(APInt::getSignedMinValue(width).sext(64));
		wide = build.CreateBinaryIntrinsic(Intrinsic::smin, wide, high);
		wide = build.CreateBinaryIntrinsic(Intrinsic::smax, wide, low);
	} else if (saturate && width < 64) {
		wide = build.CreateBinaryIntrinsic(Intrinsic::umin, wide,
						   build.getInt(APInt::getMaxValue(width).zext(64)));
	}
	return build.CreateTrunc(wide, type);
}

// From one precision to the other.
Value *Lowering::convert(Value *operand, Type *type)
{
	if (operand->getType() == type)
		return bits(operand);
	return call(operand->getType(), type->isDoubleTy() ? "to_f64" : "to_f32", bitsType(type), { operand });
}

// The remainder of two floats is a float, so the remainder of doubles serves.
Value *Lowering::remainder(Value *left, Value *right)
{
	Type *wide = build.getInt64Ty();
	if (left->getType()->isDoubleTy())
		return call("lambda_f64_rem", wide, { left, right });
	Value *args[] = { convert(left, build.getDoubleTy()), convert(right, build.getDoubleTy()) };
	return call("lambda_f64_to_f32", build.getInt32Ty(), { call("lambda_f64_rem", wide, args) });
}

// The lowered product that is an operand of a sum, if the adjacent sum is its only use.
CallInst *Lowering::takeProduct(Value *operand, BinaryOperator &add)
{
	auto *product = dyn_cast<BinaryOperator>(operand);
	if (!product || product->getOpcode() != Instruction::FMul || !product->hasOneUse() ||
	    product->getParent() != add.getParent())
		return nullptr;
	return cast<CallInst>(bits(product));
}

// A product and its sum become one call.
Value *Lowering::sum(BinaryOperator &add)
{
	Value *left = add.getOperand(0), *right = add.getOperand(1), *made;
	Type *type = add.getType(), *result = bitsType(type);
	CallInst *product = takeProduct(left, add);
	if (product) {
		made = call(type, "mul_add", result, { product->getArgOperand(0), product->getArgOperand(1), right });
	} else if ((product = takeProduct(right, add))) {
		made = call(type, "add_mul", result, { left, product->getArgOperand(0), product->getArgOperand(1) });
	} else {
		return call(type, "add", result, { left, right });
	}
	known.erase(product == known.lookup(left) ? left : right);
	product->eraseFromParent();
	return made;
}

// llvm.minnum and maxnum: if only one operand is a number, the result is that operand.
Value *Lowering::lesser(Value *left, Value *right, CmpInst::Predicate predicate)
{
	Value *takesLeft = build.CreateOr(compare(predicate, left, right), isNaN(right));
	return build.CreateSelect(takesLeft, bits(left), bits(right));
}

Value *Lowering::isClass(Value *operand, unsigned classes)
{
	Value *absolute = magnitude(operand), *negative = build.CreateIsNotNull(sign(operand));
	APInt top = infinity(operand->getType());
	unsigned fraction = APFloat::semanticsPrecision(operand->getType()->getFltSemantics()) - 1;
	APInt one(top.getBitWidth(), 1), quiet = top | one << (fraction - 1), least = one << fraction;
	Value *found = build.getFalse();

	// Each class is a range of magnitudes.
	auto test = [&](unsigned positives, unsigned negatives, const APInt &low, const APInt &high) {
		if (!(classes & (positives | negatives)))
			return;
		Value *within =
			build.CreateICmpULE(build.CreateSub(absolute, build.getInt(low)), build.getInt(high - low));
		if (!(classes & positives))
			within = build.CreateAnd(within, negative);
		else if (!(classes & negatives))
			within = build.CreateAnd(within, build.CreateNot(negative));
		found = build.CreateOr(found, within);
	};
	test(fcSNan, fcSNan, top + 1, quiet - 1);
	test(fcQNan, fcQNan, quiet, APInt::getSignedMaxValue(top.getBitWidth()));
	test(fcPosInf, fcNegInf, top, top);
	test(fcPosNormal, fcNegNormal, least, top - 1);
	test(fcPosSubnormal, fcNegSubnormal, one, least - 1);
	test(fcPosZero, fcNegZero, one - 1, one - 1);
	return found;
}

Value *Lowering::lowerIntrinsic(IntrinsicInst &call)
{
	Value *first = call.arg_size() ? call.getArgOperand(0) : nullptr;
	Value *second = call.arg_size() > 1 ? call.getArgOperand(1) : nullptr;
	Type *type = call.getType(), *result = bitsType(type);

	switch (call.getIntrinsicID()) {
	case Intrinsic::fabs:
		return magnitude(first);
	case Intrinsic::copysign:
		return build.CreateOr(magnitude(first), sign(second));
	case Intrinsic::sqrt:
		return this->call(type, "sqrt", result, { first });
	case Intrinsic::fma:
		return this->call(type, "fma", result, { first, second, call.getArgOperand(2) });
	case Intrinsic::fmuladd: // rounded twice, as on a processor without fused multiplication
		return this->call(type, "mul_add", result, { first, second, call.getArgOperand(2) });
	case Intrinsic::rint:
	case Intrinsic::nearbyint:
	case Intrinsic::roundeven:
		return round(first, Even);
	case Intrinsic::floor:
		return round(first, Down);
	case Intrinsic::ceil:
		return round(first, Up);
	case Intrinsic::trunc:
		return round(first, Zero);
	case Intrinsic::round:
		return round(first, Away);
	case Intrinsic::minnum:
		return lesser(first, second, CmpInst::FCMP_OLT);
	case Intrinsic::maxnum:
		return lesser(first, second, CmpInst::FCMP_OGT);
	case Intrinsic::fptosi_sat:
	case Intrinsic::fptoui_sat:
		if (type->getIntegerBitWidth() > 64)
			break;
		return toInteger(first, type, call.getIntrinsicID() == Intrinsic::fptosi_sat, true);
	case Intrinsic::is_fpclass:
		return isClass(first, cast<ConstantInt>(second)->getZExtValue());
	case Intrinsic::canonicalize:
		return bits(first);
	default:
		break;
	}
	return unsupported(call, call.getCalledFunction()->getName());
}

// A call of a function whose parameters or result were float: the callee is rewritten as well.
Value *Lowering::lowerCall(CallInst &call)
{
	if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call))
		return lowerIntrinsic(*intrinsic);
	if (call.isInlineAsm())
		return unsupported(call, "operands of inline assembly");
	SmallVector<Value *> args;
	for (Value *arg : call.args())
		args.push_back(bits(arg));
	CallInst *made = build.CreateCall(bitsType(call.getFunctionType()), call.getCalledOperand(), args);
	made->setCallingConv(call.getCallingConv());
	made->setTailCallKind(call.getTailCallKind());
	AttributeList attributes = call.getAttributes();
	AttributeMask numeric;
	numeric.addAttribute(Attribute::NoFPClass);
	attributes = attributes.removeRetAttributes(call.getContext(), numeric);
	for (unsigned i = 0; i < args.size(); i++)
		attributes = attributes.removeParamAttributes(call.getContext(), i, numeric);
	made->setAttributes(attributes);
	return made;
}

Value *Lowering::lower(Instruction &inst)
{
	Type *type = inst.getType(), *result = bitsType(type);
	Value *left = inst.getNumOperands() ? inst.getOperand(0) : nullptr;
	Value *right = inst.getNumOperands() > 1 ? inst.getOperand(1) : nullptr;

	switch (inst.getOpcode()) {
	case Instruction::FNeg:
		return build.CreateXor(bits(left), build.getInt(APInt::getSignMask(result->getIntegerBitWidth())));
	case Instruction::FAdd:
		return sum(cast<BinaryOperator>(inst));
	case Instruction::FSub:
		return call(type, "sub", result, { left, right });
	case Instruction::FMul:
		return call(type, "mul", result, { left, right });
	case Instruction::FDiv:
		return call(type, "div", result, { left, right });
	case Instruction::FRem:
		return remainder(left, right);
	case Instruction::FCmp:
		return compare(cast<FCmpInst>(inst).getPredicate(), left, right);
	case Instruction::FPExt:
	case Instruction::FPTrunc:
		if (isFloat(left->getType()) && isFloat(type))
			return convert(left, type);
		break;
	case Instruction::SIToFP:
	case Instruction::UIToFP:
		return fromInteger(inst, inst.getOpcode() == Instruction::SIToFP);
	case Instruction::FPToSI:
	case Instruction::FPToUI:
		if (type->getIntegerBitWidth() > 64)
			break;
		return toInteger(left, type, inst.getOpcode() == Instruction::FPToSI, false);
	case Instruction::BitCast:
		if (left->getType()->isVectorTy() || type->isVectorTy())
			break;
		return bits(left);
	case Instruction::PHI:
		return build.CreatePHI(result, cast<PHINode>(inst).getNumIncomingValues());
	case Instruction::Select:
		return build.CreateSelect(left, bits(right), bits(inst.getOperand(2)), "", &inst);
	case Instruction::Freeze:
		return build.CreateFreeze(bits(left));
	case Instruction::Ret:
		return build.CreateRet(bits(left));
	case Instruction::Call:
		return lowerCall(cast<CallInst>(inst));
	case Instruction::Load: {
		auto &load = cast<LoadInst>(inst);
		LoadInst *made = build.CreateAlignedLoad(result, left, load.getAlign(), load.isVolatile());
		made->copyMetadata(inst, { LLVMContext::MD_tbaa, LLVMContext::MD_alias_scope, LLVMContext::MD_noalias,
					   LLVMContext::MD_invariant_load });
		return made;
	}
	case Instruction::Store: {
		auto &store = cast<StoreInst>(inst);
		StoreInst *made = build.CreateAlignedStore(bits(left), right, store.getAlign(), store.isVolatile());
		made->copyMetadata(inst,
				   { LLVMContext::MD_tbaa, LLVMContext::MD_alias_scope, LLVMContext::MD_noalias });
		return made;
	}
	default:
		break;
	}
	return unsupported(inst, Twine("way to do ") + inst.getOpcodeName());
}

// The kernel refuses a global function whose type information mentions floating point.
void describe(Function &function)
{
	DISubprogram *program = function.getSubprogram();
	if (!program || !program->getType())
		return;
	DIBuilder build(*function.getParent(), /*AllowUnresolved=*/false, program->getUnit());
	SmallVector<Metadata *> types;
	for (DIType *type : program->getType()->getTypeArray()) {
		DIType *plain = type;
		auto isName = [](DIType *type) {
			return isa_and_nonnull<DIDerivedType>(type) && type->getTag() != dwarf::DW_TAG_pointer_type;
		};
		while (isName(plain))
			plain = cast<DIDerivedType>(plain)->getBaseType();
		auto *basic = dyn_cast_or_null<DIBasicType>(plain);
		bool isReal = basic && basic->getEncoding() == dwarf::DW_ATE_float;
		types.push_back(
			!isReal ? type
				: build.createBasicType(basic->getSizeInBits() == 32 ? "unsigned int" : "unsigned long",
							basic->getSizeInBits(), dwarf::DW_ATE_unsigned));
	}
	program->replaceType(build.createSubroutineType(build.getOrCreateTypeArray(types)));
}

// Gives a function integer parameters and an integer result. Its body still uses the old parameters, which args returns.
Function *withBits(Function &old, SmallVectorImpl<std::pair<Value *, Value *>> &args)
{
	FunctionType *type = bitsType(old.getFunctionType());
	if (type == old.getFunctionType())
		return &old;
	Function *made = Function::Create(type, old.getLinkage(), old.getAddressSpace());
	old.getParent()->getFunctionList().insert(old.getIterator(), made);
	made->copyAttributesFrom(&old);
	AttributeMask numeric;
	numeric.addAttribute(Attribute::NoFPClass);
	made->removeRetAttrs(numeric);
	for (Argument &arg : made->args())
		arg.removeAttrs(numeric);
	made->copyMetadata(&old, 0);
	made->takeName(&old);
	made->splice(made->begin(), &old);
	for (auto [before, after] : zip(old.args(), made->args())) {
		after.takeName(&before);
		if (isFloat(before.getType()))
			args.push_back({ &before, &after });
		else
			before.replaceAllUsesWith(&after);
	}
	old.replaceAllUsesWith(made);
	describe(*made);
	return made;
}

struct SoftFloat : PassInfoMixin<SoftFloat> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &manager)
	{
		auto &functions = manager.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
		SmallVector<Function *> work;
		for (Function &function : module)
			if (!function.isIntrinsic() &&
			    anyType(function, [](Type *type) { return isFloat(type->getScalarType()); }))
				work.push_back(&function);
		if (work.empty() && none_of(module, lambda::isOfRuntime))
			return PreservedAnalyses::all();
		for (Function *function : work) {
			if (anyType(*function, isFloatVector)) {
				ScalarizerPassOptions options;
				options.ScalarizeLoadStore = true;
				functions.invalidate(*function, ScalarizerPass(options).run(*function, functions));
			}
			functions.clear(*function, function->getName());
			SmallVector<std::pair<Value *, Value *>> args;
			Function *made = withBits(*function, args);
			if (!made->empty())
				Lowering(*made, args).run();
			if (made != function)
				function->eraseFromParent();
		}
		lambda::linkRuntime(module);
		return PreservedAnalyses::none();
	}
};

} // namespace

void lambda::addSoftFloat(ModulePassManager &passes)
{
	passes.addPass(SoftFloat());
}

bool lambda::isOfRuntime(const Function &function)
{
	return function.isDeclaration() &&
	       (function.getName().starts_with("lambda_f64_") || function.getName().starts_with("lambda_f32_"));
}

void lambda::linkRuntime(Module &module)
{
	StringRef bytes(reinterpret_cast<const char *>(runtime), sizeof(runtime));
	Expected<std::unique_ptr<Module>> parsed =
		parseBitcodeFile(MemoryBufferRef(bytes, "arithmetic"), module.getContext());
	if (!parsed)
		report_fatal_error(parsed.takeError());
	forgetVariables(**parsed);
	if (Linker::linkModules(module, std::move(*parsed), Linker::LinkOnlyNeeded))
		report_fatal_error("the functions of lambda_float.h and lambda_wide.h do not link");
}
