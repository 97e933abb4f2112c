/* Taps: Python functions that are told of all that happens on a wire.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_net.h"

int tv_tap_tell(tv_wire *w, enum tv_event event, const tc_frame *f)
{
    PyObject *frame =
        PyBytes_FromStringAndSize((const char *)f->data, f->len);
    if (!frame)
        return -1;
    Py_XSETREF(w->told, frame);
    PyObject *answer = PyObject_CallFunction(
        w->tap, "iKOI", (int)event,
        (unsigned long long)(f->time_ps / TV_PS_PER_NS), frame, f->virt);
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}
