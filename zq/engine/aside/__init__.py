"""Long work beside the event loop: functions of zq over large inputs, in a process of their own."""
