"""Distillation: ways to fine-tune a student whose loss compares it with a teacher.

    teacher = Teacher(model, tokenizer)
    student = make_student(model, StudentShape(layers=6))
    settings = FinetuneSettings(ways=(SoftLabels(teacher, temperature=2.0),))
    finetune(student, tokenizer, train, validation, settings=settings)

`students` makes them, `teacher` holds what a teacher answers, `seen` is what is read of either;
the other modules are one way each, named after its file.

`beside` hands a teacher's answers, kept by example, to the loss of a batch, so that steps can still
be recorded. A stage before (`staged`) is another call of the same trainer; a `StageWatch` shows it,
and its epochs are counted with those of the training.
"""
