"""What is trained: pretrain, probe, finetune, vpu, selfpu, pupl, taught, fewshot."""
